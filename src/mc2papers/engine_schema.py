"""The parts of a plan's schema that are on engines and baselines, made from their constructors.

Defaults are those of the signature; types, ranges and descriptions are read from the docstring, whose section
Parameters holds an entry for each argument:

    bits : {8, 16, 32, 64, 128, 256}, default 128
        Length of a signature. Only this first sentence is taken.

A type is ``int``, ``float``, ``bool``, ``None``, ``{...}`` with the values allowed, ``list of ...``,
``list of different ...`` (at least one), ``pair of ...``, ``dict of {...} to ...``, a word in quotes, or some of them
with ``or`` between; numbers may have a range, as in ``float in (0, 1]``.

``python -m mc2papers.engine_schema workflow/schemas`` writes the files of that folder anew.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mc2core.base import storage
from mc2core.inference.registry import ENGINES, engine_class, settings_of
from mc2papers.baselines import registry as baselines

_ENTRY = re.compile(r"(\w+) : (.+), default (.+)")
_NUMBER = re.compile(r"(int|float)(?: in ([\[(])(\S+), (\S+)([\])]))?")
_YAML_WORDS = {"None": "null", "True": "true", "False": "false"}
_HEADER = """\
# Made from constructors and their docstrings; do not edit. After a change of these:
# python -m mc2papers.engine_schema workflow/schemas
"""


class Entry(NamedTuple):
    """An argument as a docstring describes it: its type and default as written there, and the text below them."""

    kind: str
    default: str
    text: str


def documented(docstring: str) -> dict[str, Entry]:
    """Entries of the section Parameters by name; ValueError for one that is not ``name : type, default value``."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?:\n\n|\Z)", inspect.cleandoc(docstring), re.S | re.M)
    entries = {}
    for block in re.split(r"\n(?=\S)", section[1]) if section else ():
        head, _, text = block.partition("\n")
        match = _ENTRY.fullmatch(head)
        if match is None:
            raise ValueError(f"{head!r} is not of the form 'name : type, default value'")
        entries[match[1]] = Entry(match[2], match[3], " ".join(text.split()))
    return entries


def schema_of_type(kind: str) -> dict[str, Any]:
    """JSON Schema of a type as docstrings write it; ValueError for one that is none."""
    schema: dict[str, Any] = {}
    types: list[str] = []
    words = re.findall(r'(?<= or )"(\w+)"', f" or {kind}") if "{" not in kind else []
    if words:
        types, schema["pattern"] = ["string"], f"^({'|'.join(words)})$"
    for part in kind.split(" or "):
        if part.strip('"') in words:
            continue
        one = _schema_of_part(part)
        if "enum" in one and part != kind:
            raise ValueError(f"type {kind!r}: values in braces stand alone")
        types += [one.pop("type")] if "type" in one else []
        schema |= one
    if types:
        schema = {"type": types[0] if len(types) == 1 else types} | schema
    return schema


def _schema_of_part(kind: str) -> dict[str, Any]:
    name, _, rest = kind.partition(" of ")
    if kind in ("bool", "None"):
        return {"type": {"bool": "boolean", "None": "null"}[kind]}
    if match := _NUMBER.fullmatch(kind):
        return _schema_of_number(*match.groups())
    if re.fullmatch(r"\{.+\}", kind):
        return {"enum": _values(kind)}
    if name == "list":
        different = rest.startswith("different ")
        items = {"type": "array", "items": schema_of_type(rest.removeprefix("different "))}
        return items | ({"minItems": 1, "uniqueItems": True} if different else {})
    if name == "pair":
        return {"type": "array", "minItems": 2, "maxItems": 2, "items": schema_of_type(rest)}
    if name == "dict" and " to " in rest:
        keys, _, values = rest.partition(" to ")
        inner = {key: schema_of_type(values) for key in _values(keys)}
        return {"type": "object", "additionalProperties": False, "properties": inner}
    raise ValueError(f"type {kind!r} is not known")


def _values(braces: str) -> list[Any]:
    return list(ast.literal_eval(f"[{braces[1:-1]}]"))


def _schema_of_number(kind: str, left: str | None, least: str | None, most: str | None, right: str | None) -> Any:
    schema: dict[str, Any] = {"type": {"int": "integer", "float": "number"}[kind]}
    if least and most:
        number = int if kind == "int" else float
        schema["minimum" if left == "[" else "exclusiveMinimum"] = number(least)
        if float(most) < math.inf:
            schema["maximum" if right == "]" else "exclusiveMaximum"] = number(most)
    return schema


def first_sentence(text: str) -> str:
    """The first sentence of a description as people who write YAML read it."""
    plain = re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda match: match[1] or match[2], text)
    sentence = re.split(r"(?<=\.)\s+(?=[A-Z\"])", plain, maxsplit=1)[0]
    return re.sub(r"\b(None|True|False)\b", lambda match: _YAML_WORDS[match[0]], sentence)


def settings_schema(kind: type, settings: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of settings (name: default) of a class, none required. ValueError for one that is not described."""
    docstring = inspect.getdoc(kind) or ""
    entries = documented(docstring)
    properties = {}
    for setting, default in settings.items():
        if setting not in entries:
            raise ValueError(f"{kind.__name__}: {setting!r} is not described in the docstring")
        entry = entries[setting]
        about, schema = {"description": first_sentence(entry.text)}, schema_of_type(entry.kind)
        if "properties" in schema:
            schema["properties"] = {key: about | inner for key, inner in schema["properties"].items()}
        properties[setting] = about | schema | {"default": list(default) if isinstance(default, tuple) else default}
    return {
        "description": docstring.partition("\n")[0],
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def schema_files() -> dict[str, str]:
    """Name of each stored file: what it holds."""
    engines = {name: settings_schema(engine_class(name), settings_of(name)) for name in sorted(ENGINES)}
    methods = {
        name: settings_schema(kind, baselines.settings_of(name)) for name, kind in sorted(baselines.BASELINES.items())
    }
    return {
        "engines.schema.yaml": _file("engines", "engine's", "", engines),
        "baselines.schema.yaml": _file(
            "baselines",
            "method's",
            " They are what the papers compare with, but for HDP: it is gibbs with one_cluster_per_document=true.",
            methods,
        ),
    }


def _file(kind: str, whose: str, note: str, properties: Mapping[str, Any]) -> str:
    about = f"What differs from each {whose} defaults; a row of experiments.tsv may change it for its run.{note}"
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Settings of {kind}",
        "description": about,
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }
    return _HEADER + yaml.dump(schema, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Lists on one line, and nothing written as a reference to what came before."""

    def represent_list(self, data: Any) -> yaml.SequenceNode:
        return self.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Dumper.add_representer(list, _Dumper.represent_list)


def main(arguments: list[str]) -> int:
    """Write the files into the folder given."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print("usage: python -m mc2papers.engine_schema FOLDER", file=sys.stderr)
        return 2
    for name, text in schema_files().items():
        with storage.replacing(Path(arguments[0]) / name) as stream:
            stream.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
