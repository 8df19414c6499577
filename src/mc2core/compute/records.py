"""Named tuples of arrays that kernels receive as a single pointer.

numba passes a named tuple to a function as separate arguments: the address, shape and strides of every array. A tuple
of 20 arrays becomes 170 arguments of each function, which takes most of the compilation time. A record is instead
stored once, when Python calls a kernel, and functions receive its address (docs/notes/gibbs_kernels.md).
"""

from __future__ import annotations

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

T = TypeVar("T")


def record(cls: type[T]) -> type[T]:
    """Decorate a named tuple so that kernels receive it as a single pointer.

    Kernels can read the fields of a record and write to its arrays. They cannot create, index or return a record.
    """

    @typeof_impl.register(cls)
    def _(value: Any, context: Any) -> Any:
        kinds = [typeof_impl(one, context) for one in value]
        return None if None in kinds else Record(cls, kinds)

    return cls


class Record(types.Type):
    """The numba type of a record."""

    def __init__(self, cls: Any, kinds: list[Any]) -> None:
        self.names, self.kinds, self.stored = cls._fields, kinds, types.Tuple(kinds)
        super().__init__(f"{cls.__module__}.{cls.__qualname__}({', '.join(map(str, kinds))})")


@register_model(Record)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Record) -> None:
        super().__init__(manager, kind, manager[kind.stored].get_value_type().as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Record

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]
        return kind.kinds[kind.names.index(name)] if name in kind.names else None


@lower_getattr_generic(Record)
def _read(context: Any, builder: Any, kind: Record, pointer: Any, name: str) -> Any:
    place = kind.names.index(name)
    value = builder.load(cgutils.gep_inbounds(builder, pointer, 0, place))
    # fields do not change while a kernel runs, so the compiler may move their loads out of loops
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    context.nrt.incref(builder, kind.kinds[place], value)  # the kernel releases an array field after use
    return value


@unbox(Record)
def _store(kind: Record, values: Any, c: Any) -> Any:
    """Store the fields on the stack of the function that calls the kernel."""
    pointer = cgutils.alloca_once(c.builder, c.context.get_value_type(kind.stored))
    failed, fields = cgutils.alloca_once_value(c.builder, cgutils.false_bit), []
    for place, one in enumerate(kind.kinds):
        native = c.unbox(one, c.pyapi.tuple_getitem(values, place))
        c.builder.store(native.value, cgutils.gep_inbounds(c.builder, pointer, 0, place))
        c.builder.store(c.builder.or_(c.builder.load(failed), native.is_error), failed)
        fields.append((one, native))

    def clean_up() -> None:  # numba does the same with arguments that are not records
        for one, native in reversed(fields):
            if native.cleanup is not None:
                native.cleanup()
            c.context.nrt.decref(c.builder, one, native.value)

    return NativeValue(pointer, is_error=c.builder.load(failed), cleanup=clean_up)
