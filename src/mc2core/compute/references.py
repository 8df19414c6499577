"""Named tuples that kernels get by reference.

numba hands a tuple from kernel to kernel by value, as all the numbers that its arrays consist of, some eight for each
array, and counts references to every array of it. Of twenty arrays that is most of the code which is compiled, and a
count is an atomic operation. Here a kernel gets an address. A tuple cannot change, so the compiler may keep what it has
read. Its arrays belong to the caller, from Python, for as long as the call lasts: nothing is counted, and no kernel may
return one of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.imputils import lower_builtin, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof_impl
from numba.extending import NativeValue, infer_getattr, register_model, unbox

_Class = TypeVar("_Class", bound=type)
_ADDRESS = ir.IntType(8).as_pointer()
_WORD, _WORD_BYTES = ir.IntType(64), 8


def by_reference(instance_class: _Class) -> _Class:
    """Decorator of a class of named tuples: kernels called from Python get its instances by reference.

    They may use its fields, by name or unpacked, and hand it on. Of a class whose instances a kernel makes itself,
    numba's own kind of tuple is another type.
    """

    def typeof(value: Any, context: Any) -> Reference:
        return Reference(instance_class, tuple(numba.typeof(field) for field in value))

    typeof_impl.register(instance_class)(typeof)
    return instance_class


class Reference(types.BaseTuple):
    """numba's type of a named tuple by reference; ``types`` are those of its fields, by number as of any tuple."""

    def __init__(self, instance_class: Any, fields: tuple[types.Type, ...]) -> None:
        self.types, self.names = fields, instance_class._fields
        digest = hashlib.sha256(" ".join(map(str, fields)).encode()).hexdigest()[:16]  # symbols' names stay short
        super().__init__(f"{instance_class.__module__}.{instance_class.__qualname__}.{digest}")

    def __len__(self) -> int:
        return len(self.types)

    def __iter__(self) -> Iterator[types.Type]:
        return iter(self.types)

    def __getitem__(self, index: Any) -> Any:
        return self.types[index]


@register_model(Reference)
class _Model(models.OpaqueModel):
    """The address of the words that hold the fields one after another."""


class _Fields:
    """Code that writes and reads the fields.

    An array is its number of entries, address, shape and strides, a tuple its items, anything else what numba stores.
    """

    def __init__(self, context: Any, builder: Any, kind: Reference, address: Any = None) -> None:
        self.context, self.builder, self.kind = context, builder, kind
        self.first = [0]  # word of each field, and their number
        for field in kind:
            self.first.append(self.first[-1] + self._n_words(field))
        self.address = self._room() if address is None else address

    def _n_words(self, field: Any) -> int:
        if isinstance(field, types.Array):
            return 2 + 2 * field.ndim
        if _is_plain_tuple(field):
            return sum(self._n_words(one) for one in field.types)
        return -(-self.context.get_abi_sizeof(self.context.get_data_type(field)) // _WORD_BYTES)

    def _room(self) -> Any:
        room = cgutils.alloca_once(self.builder, _WORD, size=max(self.first[-1], 1))
        return self.builder.bitcast(room, _ADDRESS)

    def _place(self, word: int, kind: Any) -> Any:
        place = self.builder.gep(self.address, [ir.Constant(_WORD, word * _WORD_BYTES)], inbounds=True)
        return self.builder.bitcast(place, kind.as_pointer())

    def _load(self, word: int, kind: Any) -> Any:
        loaded = self.builder.load(self._place(word, kind))
        loaded.set_metadata("invariant.load", self.builder.module.add_metadata([]))
        return loaded

    def _parts(self, field: Any, value: Any) -> list[Any]:
        if isinstance(field, types.Array):
            array = self.context.make_array(field)(self.context, self.builder, value)
            sizes = [cgutils.unpack_tuple(self.builder, sizes) for sizes in (array.shape, array.strides)]
            return [array.nitems, array.data, *sizes[0], *sizes[1]]
        if _is_plain_tuple(field):
            items = cgutils.unpack_tuple(self.builder, value)
            return [part for one, item in zip(field.types, items, strict=True) for part in self._parts(one, item)]
        return [self.context.data_model_manager[field].as_data(self.builder, value)]

    def write(self, number: int, value: Any) -> None:
        """Write field ``number``."""
        for word, part in enumerate(self._parts(self.kind[number], value), self.first[number]):
            self.builder.store(part, self._place(word, part.type))

    def read(self, number: int) -> Any:
        """The value of field ``number``: of an array a view that belongs to nobody."""
        return self._read(self.kind[number], self.first[number])

    def _read(self, field: Any, word: int) -> Any:
        if _is_plain_tuple(field):
            items = []
            for one in field.types:
                items.append(self._read(one, word))
                word += self._n_words(one)
            return self.context.make_tuple(self.builder, field, items)
        model = self.context.data_model_manager[field]
        if not isinstance(field, types.Array):
            return model.from_data(self.builder, self._load(word, model.get_data_type()))
        value = ir.Constant(model.get_value_type(), None)
        item_bytes = self.context.get_abi_sizeof(self.context.get_data_type(field.dtype))
        address = self._load(word + 1, value.type.elements[model.get_field_position("data")])
        places: dict[str, Any] = {name: model.get_field_position(name) for name in ("nitems", "itemsize", "data")}
        value = self.builder.insert_value(value, self._load(word, _WORD), places["nitems"])
        value = self.builder.insert_value(value, ir.Constant(_WORD, item_bytes), places["itemsize"])
        value = self.builder.insert_value(value, address, places["data"])
        for i in range(2 * field.ndim):
            name, dimension = ("shape", i) if i < field.ndim else ("strides", i - field.ndim)
            size = self._load(word + 2 + i, _WORD)
            value = self.builder.insert_value(value, size, [model.get_field_position(name), dimension])
        return value


def _is_plain_tuple(field: Any) -> bool:
    return isinstance(field, types.BaseTuple) and not isinstance(field, Reference)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Any, name: Any) -> Any:  # type: ignore[override]
        return kind[kind.names.index(name)] if name in kind.names else None


@lower_getattr_generic(Reference)
def _get_attribute(context: Any, builder: Any, kind: Reference, address: Any, name: str) -> Any:
    return _Fields(context, builder, kind, address).read(kind.names.index(name))


@lower_builtin("static_getitem", Reference, types.IntegerLiteral)
def _get_item(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, (address, number) = signature.args[0], arguments
    return _Fields(context, builder, kind, address).read(range(len(kind))[number])


@unbox(Reference)
def _from_python(kind: Reference, instance: Any, c: Any) -> NativeValue:
    fields = _Fields(c.context, c.builder, kind)
    is_wrong = cgutils.alloca_once_value(c.builder, cgutils.false_bit)
    natives = [c.unbox(field, c.pyapi.tuple_getitem(instance, number)) for number, field in enumerate(kind)]
    for number, native in enumerate(natives):
        with c.builder.if_then(native.is_error, likely=False):
            c.builder.store(cgutils.true_bit, is_wrong)
        fields.write(number, native.value)

    def release() -> None:
        for field, native in zip(kind, natives, strict=True):
            if native.cleanup is not None:
                native.cleanup()
            c.context.nrt.decref(c.builder, field, native.value)

    # nothing moves what is read of the fields to before they are written: of this address the compiler knows nothing
    as_it_is = ir.FunctionType(_ADDRESS, [_ADDRESS])
    address = c.builder.asm(as_it_is, "", "=r,0,~{memory}", [fields.address], side_effect=True)
    return NativeValue(address, is_error=c.builder.load(is_wrong), cleanup=release)
