"""Plans: configuration and sheets, checked so that a slip stops a run before its first job.

A validator of JSON Schema answers with the schema around a fault; here each fault is one sentence.
"""

from __future__ import annotations

import csv
import difflib
import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml


def nearest(name: str, known: Iterable[str]) -> str:
    """A clause for an error message: "; did you mean 'x'?", or the list of what is known where nothing is near."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(map(str, known))}"


def check_keys(value: Any, schema: Mapping[str, Any], where: str, _root: Mapping[str, Any] | None = None) -> None:
    """ValueError for the first key of ``value`` that the JSON Schema has no room for, at any depth.

    Reads ``properties``, ``additionalProperties`` and local ``$ref``; ``where`` begins the message.
    """
    root = _root or schema
    while "$ref" in schema:
        node: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            node = node[part]
        schema = node
    if not isinstance(value, Mapping):
        return
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", {})
    for key, inner in value.items():
        if key not in known and rest is False:
            raise ValueError(f"{where}: {key!r} is not known{nearest(str(key), known)}")
        inside = f"{where}, {key}" if ":" in where else f"{where}: {key}"
        check_keys(inner, known.get(key, rest or {}), inside, root)


def check_values(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """ValueError for the value that breaks the JSON Schema most plainly: its key, what was found, what is allowed."""
    import jsonschema

    fault = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(value))
    if fault is None:
        return
    keys = ", ".join(map(str, fault.absolute_path))
    about = str(fault.schema.get("description", "")) if isinstance(fault.schema, Mapping) else ""
    allowed = f" ({' '.join(about.split())})" if about else ""
    raise ValueError(f"{where}: {keys + ': ' if keys else ''}{' '.join(fault.message.split())}{allowed}")


def check_mirror(config: Mapping[str, Any]) -> None:
    """ValueError for a ``mirror`` that is no folder."""
    if config["mirror"] and not Path(config["mirror"]).is_dir():
        raise ValueError(
            f"configuration: mirror: {str(config['mirror'])!r} is no folder; a folder of source files is needed, "
            "or '' for none"
        )


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """The content of a YAML file; ValueError naming the file and the place for one that cannot be read."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not readable YAML: {' '.join(str(error).split())}") from error


def read_sheet(path: str | os.PathLike[str], schema: Mapping[str, Any], key: str) -> list[dict[str, str]]:
    """Rows of a tab-separated sheet as dicts of text.

    Parameters
    ----------
    schema : JSON Schema of one row; its ``properties`` are the columns allowed, ``required`` those that must be there.
    key : the column that names a row; a name may occur once.

    Raises
    ------
    ValueError
        The file or a column is missing, a column is unknown, a row is too short or too long, or a name occurs twice.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", restkey="")
        columns = list(rows.fieldnames or ())
        for column in columns:
            if column not in schema["properties"]:
                raise ValueError(f"{path}: column {column!r} is not known{nearest(column, schema['properties'])}")
        for column in schema.get("required", ()):
            if column not in columns:
                raise ValueError(f"{path}: column {column!r} is missing")
        seen: dict[str, int] = {}
        table = []
        for row in rows:
            where = f"{path}, line {rows.line_num}"
            if "" in row or None in row.values():
                raise ValueError(f"{where} does not have {len(columns)} fields")
            if row[key] in seen:
                raise ValueError(f"{where}: {key} {row[key]!r} is the name of line {seen[row[key]]} too")
            seen[row[key]] = rows.line_num
            for column, rule in schema["properties"].items():
                pattern = rule.get("pattern", ".+" if rule.get("minLength") else "")
                if not re.search(pattern, row.get(column, "")):
                    raise ValueError(
                        f"{where}: {column} {row.get(column, '')!r} is not of the form {pattern} "
                        f"({rule['description'].rstrip('.')})"
                    )
            table.append(dict(row))
    return table


def parse_settings(text: str, where: str) -> dict[str, Any]:
    """``"kernel=collapsed iterations=10"`` as ``{"kernel": "collapsed", "iterations": 10}`` (values are YAML)."""
    settings: dict[str, Any] = {}
    for part in text.split():
        name, sign, value = part.partition("=")
        if not name or not sign or not value:
            raise ValueError(f"{where}: {part!r} must have the form name=value")
        if name in settings:
            raise ValueError(f"{where}: {name!r} is set twice")
        settings[name] = yaml.safe_load(value)
    return settings


def choose_datasets(config: Mapping[str, Any]) -> list[str]:
    """The ``datasets`` of a configuration, a list or text with commas; ValueError for one it has no corpus for."""
    chosen = config["datasets"]
    names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else list(chosen)
    for name in names:
        if name not in config["corpora"]:
            raise ValueError(f"configuration: datasets: {name!r} is not known{nearest(name, config['corpora'])}")
    return names


#: keys of a corpus in the plan that name files of datasets.tsv
FILE_KEYS = ("file", "files", "writers", "links", "targets", "vocabulary")


def check_files(
    config: Mapping[str, Any], sheet: Iterable[Mapping[str, str]], chosen: Iterable[str], files_of: Mapping[str, str]
) -> None:
    """ValueError for the first file that a chosen corpus is to be read from and that datasets.tsv does not have.

    files_of : datasets that are parts of another one's files. Drawn corpora and a user's own are not looked at.
    """
    known: dict[str, list[str]] = {}
    for row in sheet:
        known.setdefault(row["dataset"], []).append(row["file"])
    for dataset in chosen:
        corpus = config["corpora"][dataset]
        if corpus["source"] not in ("real", "real excerpt"):
            continue
        whole = files_of.get(dataset, dataset)
        there = known.get(whole, [])
        named = corpus if corpus.keys() & set(FILE_KEYS) else config["corpora"][whole]
        for key in FILE_KEYS:
            value = named.get(key)
            for name in value if isinstance(value, list) else [value]:
                if isinstance(name, str) and name not in (*there, "baseline", "eutilities"):
                    where = f"configuration: corpora, {dataset}: {key}"
                    raise ValueError(f"{where}: {name!r} is not in config/datasets.tsv{nearest(name, there)}")


def read_experiments(
    path: str | os.PathLike[str], schema: Mapping[str, Any], config: Mapping[str, Any], chosen: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Rows of ``experiments.tsv`` on the chosen datasets, with all that defines each fit looked up in the plan.

    Returns
    -------
    ``{run: {"targets": [...], "dataset": ..., "method": ..., "fit": {...}}}`` where ``fit`` holds engine, settings,
    contexts (name to family settings), iterations, burn_in and thin.

    Raises
    ------
    ValueError
        What :func:`read_sheet` refuses; a dataset, engine, context or setting that the plan does not have.
    """
    runs: dict[str, dict[str, Any]] = {}
    for row in read_sheet(path, schema, key="run"):
        where = f"{path}, run {row['run']!r}"
        contexts = [name for name in row["contexts"].split("+") if name]
        for kind, name, known in (
            ("dataset", row["dataset"], config["corpora"]),
            ("engine", row["engine"], config["engines"]),
            *(("context", name, config["contexts"]) for name in contexts),
        ):
            if name not in known:
                raise ValueError(f"{where}: {kind} {name!r} is not known{nearest(name, known)}")
        chosen_contexts = config["corpora"][row["dataset"]].get("contexts")  # names, or "[NAME=]COLUMN:KIND"
        offered = [text.partition(":")[0].partition("=")[0] for text in chosen_contexts or ()]
        for name in contexts:
            if chosen_contexts is not None and name not in offered:
                raise ValueError(f"{where}: context {name!r} is not among those of corpora.{row['dataset']}: {offered}")
        settings, length = dict(config["engines"][row["engine"]]), dict(config["fit"][row["dataset"]])
        for name, value in parse_settings(row["settings"], where).items():
            if name not in settings and name not in length:
                raise ValueError(f"{where}: setting {name!r} is not known{nearest(name, [*settings, *length])}")
            (settings if name in settings else length)[name] = value
        if row["dataset"] in chosen:
            families = {name: dict(config["contexts"][name]) for name in contexts}
            runs[row["run"]] = {
                "targets": row["targets"].split(),
                "dataset": row["dataset"],
                "method": row["method"],
                "fit": {"engine": row["engine"], "settings": settings, "contexts": families, **length},
            }
    return runs


def variants(runs: Mapping[str, Mapping[str, Any]], engine: str) -> list[dict[str, Any]]:
    """Settings with which runs of :func:`read_experiments` use an engine, one for each combination of choices.

    Numbers are no choices: a kernel compiled for one does for all.
    """
    found: dict[str, dict[str, Any]] = {}
    for run in runs.values():
        if run["fit"]["engine"] == engine:
            settings = run["fit"]["settings"]
            choices = {name: value for name, value in settings.items() if isinstance(value, str | bool | list)}
            found.setdefault(json.dumps(choices, sort_keys=True), settings)
    return list(found.values())


_IMPORT = re.compile(r"^[ ]*(?:from (mc2core[\w.]*) import (\([^)]*\)|[^\n#]*)|import (mc2core[\w.]*))", re.M)
_FOR_TYPES_ONLY = re.compile(r"^if TYPE_CHECKING:\n(?:[ ]+.*\n)+", re.M)
_PACKAGE = Path(__file__).parent


def code_digest(*modules: str) -> str:
    """SHA-256 (hex) of the source of modules of this package and of all they import from it.

    A workflow sees that a script changed, but not that a module did: this, as a parameter of a rule, tells it.
    Sources are read, not imported. ValueError for a module that is not there.
    """
    found: dict[str, bytes] = {}
    ahead = list(modules)
    while ahead:
        name = ahead.pop()
        if name in found:
            continue
        path = _module_path(name)
        if path is None:
            raise ValueError(f"module {name!r} is not there")
        found[name] = path.read_bytes()
        ahead += _imports(path)
    total = hashlib.sha256()
    for name in sorted(found):
        total.update(name.encode() + b"\0" + found[name] + b"\0")
    return total.hexdigest()


def _module_path(name: str) -> Path | None:
    path = _PACKAGE.joinpath(*name.split(".")[1:])
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@functools.cache
def _imports(path: Path) -> list[str]:
    """Modules of this package that a source file imports, at its top or inside a function, but not for types only."""
    names = []
    for module, members, plain in _IMPORT.findall(_FOR_TYPES_ONLY.sub("", path.read_text(encoding="utf-8"))):
        inside = [f"{module}.{member}" for member in re.findall(r"(\w+)(?: as \w+)?", members)]
        names += [module or plain, *(one for one in inside if module and _module_path(one))]
    return names
