"""Configurations against their JSON Schemas, with one plain sentence for what does not fit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mc2core.base.checks import nearest
from mc2papers import plain_yaml


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A JSON Schema from its file."""
    schema: dict[str, Any] = plain_yaml.read(path)
    return schema


def check_keys(value: Any, schema: Mapping[str, Any], where: str, _root: Mapping[str, Any] | None = None) -> None:
    """ValueError for the first key of ``value`` that the JSON Schema has no room for, at any depth.

    Reads ``properties``, ``additionalProperties`` and local ``$ref``; ``where`` begins the message.
    """
    root = _root or schema
    schema = resolved(schema, root)
    if not isinstance(value, Mapping):
        return
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", {})
    for key, inner in value.items():
        if key not in known and rest is False:
            raise ValueError(f"{where}: {key!r} is not known{nearest(str(key), known)}")
        inside = f"{where}, {key}" if ":" in where else f"{where}: {key}"
        check_keys(inner, known.get(key, rest or {}), inside, root)


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema itself, or what it refers to in ``root`` (``$ref: "#/definitions/..."``)."""
    while "$ref" in schema:
        node: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    return schema


def read_numbers(value: Any, schema: Mapping[str, Any], _root: Mapping[str, Any] | None = None) -> Any:
    """``value`` with a number, in place, wherever the schema wants one and Snakemake left text such as "1e-2".

    A whole number is an int where the schema asks for an integer: 3.0 is 3.
    """
    root = _root or schema
    schema = resolved(schema, root)
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties") or {}
        for key in value:
            value[key] = read_numbers(value[key], known.get(key, rest), root)
    elif isinstance(value, list):
        value[:] = [read_numbers(one, schema.get("items", {}), root) for one in value]
    else:
        kinds = schema.get("type", [])
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        is_free = "string" in kinds and "pattern" not in schema
        # of settings that constructors check the schema says nothing
        if isinstance(value, str) and (not kinds or kinds & {"number", "integer"}) and not is_free:
            found = plain_yaml.parse(value, repr(value)) if re.fullmatch(r"[-+.0-9eE]+", value) else None
            value = found if isinstance(found, int | float) else value
        if isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds:
            value = int(value)
    return value


def check_values(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """ValueError for the value that breaks the JSON Schema most plainly: its key, what was found, what is allowed."""
    import jsonschema

    for place, text in _texts(value):
        if character := control_character(text):
            raise ValueError(f"{where}: {', '.join(map(str, place))}: {text!r} holds {character}")
    standard = jsonschema.Draft202012Validator

    def is_finite(kind: str) -> Any:
        return lambda checker, one: standard.TYPE_CHECKER.is_type(one, kind) and abs(one) <= sys.float_info.max

    # every comparison with NaN is false, so bounds let it pass; whole numbers beyond all floats are of no use
    checker = standard.TYPE_CHECKER.redefine_many({kind: is_finite(kind) for kind in ("number", "integer")})
    validator = jsonschema.validators.extend(standard, type_checker=checker)(schema)
    fault = jsonschema.exceptions.best_match(validator.iter_errors(value))
    if fault is None:
        return
    keys = ", ".join(map(str, fault.absolute_path))
    about = str(fault.schema.get("description", "")) if isinstance(fault.schema, Mapping) else ""
    allowed = f" ({' '.join(about.split())})" if about else ""
    raise ValueError(f"{where}: {keys + ': ' if keys else ''}{' '.join(fault.message.split())}{allowed}")


def _texts(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Every text inside, with the keys that lead to it."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(inner, (*keys, key))


def control_character(text: str) -> str:
    """What no name, path or title may hold, such as a line break or NUL; "" if there is none."""
    found = re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", text)
    return f"the character U+{ord(found[0]):04X}; text is of printable characters, on one line" if found else ""
