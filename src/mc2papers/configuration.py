"""Read and check the configuration and the experiments table before the first job (:class:`Configuration`).

A fault raises ValueError with a message of one sentence.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from mc2core.base.checks import choice, did_you_mean, nearest, whole
from mc2core.base.records import csv_rows, lines_of
from mc2core.base.settings import parse_settings, split_settings
from mc2papers.engines import ENGINES, KEEP_SAMPLES, engine_of

#: baselines that write a model; the others write assignments. Their classes also have this, but take a second to load.
LEAVE_MODELS = ("lda", "mllib_lda")
#: baselines that Spark runs; they are fitted with one seed only, because a fit takes long
ON_SPARK = ("mllib_lda",)
#: real corpora on which a fit takes only a few seconds
SMALL = ("uiucsports", "stateunion", "clinc")
#: setting of an experiment: fraction of documents without contexts (mc2core.corpus.subsets.without_contexts)
MISSING = "missing"
#: setting of an experiment: number of chains per fit (mc2core.fit)
CHAINS = "chains"
#: the target that requests the scores of all experiments; it makes no table and no figure
SCORES = "fits"
#: keys of a corpus that name files of datasets.tsv
FILE_KEYS = ("files", "writers", "links", "targets", "vocabulary")
#: keys of a corpus that name files of the user, and the required keys among them
OWN_KEYS, NEEDED_KEYS = ("file", "folder", "vocabulary", "stop_words"), ("file", "folder")
#: datasets that are read from the files of another dataset
FILES_OF = {"pnas": "pubmed", "w100": "wikipedia", "w1000": "wikipedia"}

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_EXPONENT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.?[0-9]*)[eE][-+]?[0-9]+")
_STANDARD = jsonschema.Draft202012Validator


def _finite(kind: str) -> Any:
    return lambda _, one: _STANDARD.TYPE_CHECKER.is_type(one, kind) and abs(one) <= sys.float_info.max


# NaN passes every bound, and integers that do not fit into a float cannot be used
_TYPES = _STANDARD.TYPE_CHECKER.redefine_many({kind: _finite(kind) for kind in ("number", "integer")})
_VALIDATOR = jsonschema.validators.extend(_STANDARD, type_checker=_TYPES)


# -- files and schemas ---------------------------------------------------------------------------------------------
class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses a repeated key, which PyYAML would accept."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in lines:
                    raise ValueError(f"the key {key.value!r} is in line {lines[key.value]} and again in line {line}")
                lines[key.value] = line
        return node


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """Read a YAML file. Raises ValueError with the name of the file if it cannot be read."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    text = "".join(line for _, line in lines_of(path))
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable YAML: {' '.join(str(error).split())}") from None


def check_config_files(arguments: Iterable[str]) -> None:
    """Raise SystemExit with one sentence if a file after ``--configfile`` or ``--configfiles`` cannot be read.

    The profile calls this function, because Snakemake reads the profile first. Without this check, Snakemake would show
    a traceback or omit the name of the file.
    """
    is_file = False
    for argument in arguments:
        option, _, value = argument.partition("=")
        if argument.startswith("-"):
            is_file = option in ("--configfile", "--configfiles")
            argument = value
        if is_file and argument:
            try:
                if not isinstance(read_yaml(argument), Mapping):
                    raise ValueError(f"{argument} has no keys at its top level")
            except (ValueError, OSError) as error:
                raise SystemExit(f"configuration: {error}") from None


def check_executor(name: str) -> None:
    """Raise SystemExit with one sentence if the plugin of this executor is not installed.

    The profiles call this function, because Snakemake reads profiles first. Without this check, Snakemake would print
    all its options before the message.
    """
    if find_spec(f"snakemake_executor_plugin_{name.replace('-', '_')}") is None:
        command = "pip install -c constraints.txt -e '.[workflow,cluster]'"
        raise SystemExit(f"executor {name} needs the optional packages 'cluster': {command}")


def misspelt(names: Iterable[str], rules: Collection[str]) -> list[str]:
    """Return a message for each target in ``names`` that is not a rule but resembles the name of a rule."""
    hints = {name: did_you_mean(name, rules) for name in names if name not in rules and not {"/", "."} & set(name)}
    return [f"there is no target {name!r}{hint}" for name, hint in hints.items() if hint]


def check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Raise ValueError if a value violates a JSON Schema; the message has the key, its value and the allowed values."""
    for keys, text in _texts(value):
        if found := _CONTROL.search(text):
            place = ": ".join(filter(None, (where, ", ".join(map(str, keys)))))
            raise ValueError(f"{place}: {text!r} holds the control character U+{ord(found[0]):04X}")
    fault = jsonschema.exceptions.best_match(_VALIDATOR(schema).iter_errors(value))
    if fault is None:
        return
    place = ": ".join(filter(None, (where, ", ".join(map(str, fault.absolute_path)))))
    if fault.validator == "additionalProperties":
        _refuse_unknown(place, fault.instance, fault.schema["properties"])
    about = " ".join(str(fault.schema.get("description", "")).split())
    raise ValueError(f"{place}: {' '.join(fault.message.split())}{f' ({about})' if about else ''}")


def _refuse_unknown(where: str, names: Iterable[Any], known: Collection[str], what: str = "") -> None:
    """Raise ValueError for the first of ``names`` that is not in ``known``; the message suggests the nearest name."""
    for name in names:
        if name not in known:
            raise ValueError(f"{where}: {what}{name!r} is not known{nearest(name, known)}")


def _texts(value: Any, keys: tuple[Any, ...] = ()) -> Iterable[tuple[tuple[Any, ...], str]]:
    """Yield every string in a nested value, with the keys that lead to the string."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, Mapping | list):
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _texts(inner, (*keys, key))


def with_numbers(value: Any) -> Any:
    """Return a configuration with strings such as "1e-2" converted to numbers, and floats such as 3.0 to integers.

    Snakemake reads YAML 1.1, in which 1e-2 is a string.
    """
    if isinstance(value, Mapping):
        return {key: with_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_numbers(inner) for inner in value]
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        value = float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_table(path: str | os.PathLike[str], schema: Mapping[str, Any], key: str) -> list[dict[str, str]]:
    """Return the rows of a tab-separated table as dicts of text.

    Parameters
    ----------
    schema : JSON Schema of one row; its ``properties`` are the columns.
    key : column with the name of a row, which must be unique.

    Raises
    ------
    ValueError
        If the file or a column is missing, there are no rows, a column is unknown, a row is too short or too long, a
        field has a wrong form or a control character, or a name occurs twice.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    rows = csv_rows(path, "\t")
    _, columns = next(rows, (0, []))
    _refuse_unknown(str(path), columns, schema["properties"], "column ")
    for place, column in enumerate(columns):
        if column in columns[:place]:
            raise ValueError(f"{path}: column {column!r} is there twice")
    for column in schema["required"]:
        if column not in columns:
            raise ValueError(f"{path}: column {column!r} is missing")
    lines: dict[str, int] = {}
    table = []
    for line, fields in rows:
        row = dict(zip(columns, fields, strict=True))
        check(row, schema, f"{path}, line {line}")
        if row[key] in lines:
            raise ValueError(f"{path}, line {line}: {key} {row[key]!r} is already used in line {lines[row[key]]}")
        lines[row[key]] = line
        table.append(row)
    if not table:
        raise ValueError(f"{path} has no row below its header")
    return table


def check_lengths(config: Mapping[str, Any]) -> None:
    """Raise ValueError if ``fit`` lacks the entry of a corpus, or has an entry of an unknown corpus."""
    _refuse_unknown("configuration: fit", config["fit"], config["corpora"])
    if lacking := [name for name in config["corpora"] if name not in config["fit"]]:
        raise ValueError(f"configuration: fit has no entry for {lacking[0]!r}, which is in corpora; add one")


# -- missing files and optional parts -------------------------------------------------------------------------------
def check_data_folder(config: Mapping[str, Any]) -> None:
    """Raise ValueError if ``data_folder`` is not a folder."""
    if config["data_folder"] and not Path(config["data_folder"]).is_dir():
        folder = str(config["data_folder"])
        raise ValueError(
            f"configuration: data_folder: {folder!r} is no folder; a folder of source files is needed, or '' for none"
        )


def check_word(config: Mapping[str, Any], chosen: Iterable[str], corpora: str = "results/corpora") -> None:
    """Raise ValueError if ``figure4.word`` is not in the vocabulary of the PNAS corpus, if this corpus exists."""
    word, vocabulary = config["figure4"]["word"], Path(corpora) / "pnas/train/vocabulary.txt"
    if word and "pnas" in chosen and vocabulary.is_file():
        known = vocabulary.read_text(encoding="utf-8").split("\n")
        if word not in known:
            hint = did_you_mean(word, known)
            raise ValueError(f"configuration: figure4: word: {word!r} is not in the vocabulary of pnas{hint}")


def choose_datasets(config: Mapping[str, Any]) -> list[str]:
    """Return the ``datasets`` of a configuration as a list. Raises ValueError for unknown or repeated datasets."""
    chosen = config["datasets"]
    names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else list(chosen)
    _refuse_unknown("configuration: datasets", names, config["corpora"])
    if several := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"configuration: datasets: {several[0]!r} is named twice")
    return names


def leave_out(
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    table: Iterable[Mapping[str, str]],
    chosen: Sequence[str],
    fetched: str | os.PathLike[str] = "results/sources",
) -> tuple[list[str], list[str]]:
    """Return the chosen datasets whose files are available, and messages on the omitted datasets.

    Two kinds of files are checked: files of datasets that can only be real, such as the labelled corpora, and files of
    excerpts without an official address. Each file must be in the local data folder, or in ``fetched`` from an earlier
    run. Raises ValueError if no dataset remains.
    """
    corpora = schema["properties"]["corpora"]["properties"]
    is_real = {name: corpora[name]["properties"]["source"].get("enum") == ["real"] for name in chosen}
    excerpts = {name: config["corpora"][name] for name in chosen}
    files = {name: one["files"] for name, one in excerpts.items() if one["source"] == "real excerpt" and "files" in one}
    lacking: dict[str, list[Mapping[str, str]]] = {}
    for row in table:
        places = [Path(fetched) / row["dataset"] / row["file"]]
        if config["data_folder"]:
            places.append(Path(config["data_folder"]) / row["path"])
        is_needed = is_real.get(row["dataset"]) or (
            row["file"] in files.get(row["dataset"], ()) and not row["addresses"]
        )
        if is_needed and not any(place.is_file() for place in places):
            lacking.setdefault(row["dataset"], []).append(row)
    reasons: dict[str, str] = {}
    for dataset, rows in lacking.items():
        wanted = " ".join(f"{fetched}/{dataset}/{row['file']}" for row in rows)
        can_fetch = all(row["addresses"] for row in rows)
        how = f"'snakemake {wanted}' fetches it" if can_fetch else "it has no official address"
        wanted = ", ".join(row["path"] for row in rows)
        reasons[dataset] = (
            f"{dataset} is left out: no local data folder (--config data_folder=FOLDER) has {wanted}; {how}"
        )
    kept = [name for name in chosen if name not in reasons]
    if not kept:
        raise ValueError(f"configuration: no dataset is left; {'; '.join(reasons.values())}")
    if len(reasons) > 1 and not config["data_folder"]:
        names = ", ".join(reasons)
        return kept, [f"{names} are left out: no local data folder (--config data_folder=FOLDER) has their files"]
    return kept, [*reasons.values()]


def leave_out_runs(runs: Mapping[str, Any], config: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the runs whose contexts are available, and messages on the runs that lack a context.

    A corpus read from files has only the ``contexts`` of its entry in the configuration. Runs that match ``leave_out``
    are omitted without a message. Raises ValueError if ``leave_out`` has an unknown name that is not a pattern with
    ``*``.
    """
    _refuse_unknown("configuration: leave_out", (name for name in config["leave_out"] if "*" not in name), runs)
    kept, reasons = {}, []
    for name, run in runs.items():
        if any(fnmatchcase(name, pattern) for pattern in config["leave_out"]):
            continue
        corpus = config["corpora"][run["dataset"]]
        is_real = corpus["source"] in ("real", "real excerpt") and "contexts" in corpus
        lacking = [one for one in run["fit"]["contexts"] if is_real and one not in corpus["contexts"]]
        if lacking:
            has = ", ".join(corpus["contexts"]) or "none"
            reasons.append(f"{name} is left out: corpora.{run['dataset']} has no context {lacking[0]!r}; it has: {has}")
        else:
            kept[name] = run
    return kept, reasons


def leave_out_spark(
    runs: Mapping[str, Any], config: Mapping[str, Any], lack: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return the runs that can be fitted, and messages on the runs that are omitted because of Spark.

    If Spark is missing, ``lack`` is the reason. MLlib's LDA takes minutes even on small corpora, so it is fitted only
    on the datasets in ``table2.lda``.
    """
    kept, reasons = {}, []
    for name, run in runs.items():
        is_baseline = run["fit"]["engine"] in ON_SPARK
        if is_baseline and run["dataset"] not in config["table2"]["lda"]:
            reasons.append(f"{name} is left out: {run['dataset']} is not in table2.lda of the configuration")
        elif lack and (is_baseline or run["fit"]["settings"].get("n_shards") is not None):
            reasons.append(f"{name} is left out: {lack}")
        else:
            kept[name] = run
    return kept, reasons


def check_files(config: Mapping[str, Any], table: Iterable[Mapping[str, str]], chosen: Iterable[str]) -> None:
    """Raise ValueError for the first file of a real corpus that datasets.tsv does not list."""
    known: dict[str, list[str]] = {}
    for row in table:
        known.setdefault(row["dataset"], []).append(row["file"])
    for dataset in chosen:
        corpus = config["corpora"][dataset]
        if corpus["source"] not in ("real", "real excerpt"):
            continue
        whole = FILES_OF.get(dataset, dataset)
        there = known.get(whole, [])
        if not there:
            raise ValueError(f"configuration: corpora, {dataset}: config/datasets.tsv has no file of {whole!r}")
        named = corpus if corpus.keys() & set(FILE_KEYS) else config["corpora"][whole]
        for key in FILE_KEYS:
            value = named.get(key)
            for name in value if isinstance(value, list) else [value]:
                if isinstance(name, str) and name not in (*there, "baseline", "eutilities"):
                    where = f"configuration: corpora, {dataset}: {key}"
                    raise ValueError(f"{where}: {name!r} is not in config/datasets.tsv{nearest(name, there)}")


def own_paths(corpus: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the paths of the user's files and folders in an entry of ``corpora``, by OWN_KEYS; None for no path."""
    from mc2core.corpus.readers.reading import is_file_of_words

    paths = {key: corpus[key] for key in OWN_KEYS if key in corpus}
    if not is_file_of_words(paths.get("stop_words")):
        paths.pop("stop_words", None)
    return paths


def check_own_files(config: Mapping[str, Any], chosen: Iterable[str], must_exist: bool = True) -> None:
    """Raise ValueError if a chosen corpus has no path for a required file of the user, or if this file does not exist.

    Snakemake does not check the input of existing output. Without this check, results of another file could be used.

    must_exist : whether to check that files exist.
    """
    for dataset in chosen:
        corpus = config["corpora"][dataset]
        for key, path in own_paths(corpus).items() if corpus["source"] == "own" else ():
            where = f"configuration: corpora, {dataset}: {key}"
            if path is None and key in NEEDED_KEYS:
                raise ValueError(f"{where} is null; the source 'own' needs its path")
            if must_exist and path is not None and not Path(path).exists():
                raise ValueError(f"{where}: {path!r} is not there (the folder of this run is {str(Path.cwd())!r})")


def own_contexts(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the family settings of each context of ``corpora.mine``.

    The kind of a context determines its family. If the key ``contexts`` of the configuration has an entry of the same
    family under the name of the context, its prior is used.
    """
    from mc2core.corpus.building.settings import parse_contexts  # a fifth of a second to load
    from mc2core.corpus.checks import FAMILY_OF_KIND

    families = {}
    for name, column in parse_contexts(config["corpora"]["mine"]["contexts"]).items():
        family, named = FAMILY_OF_KIND[column.kind], config["contexts"].get(name, {})
        families[name] = dict(named) if named.get("family") == family else {"family": family}
    return families


def read_experiments(
    path: str | os.PathLike[str], schema: Mapping[str, Any], config: Mapping[str, Any], chosen: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return the rows of ``experiments.tsv`` on the chosen datasets, completed by the settings in the configuration.

    Returns
    -------
    ``{run: {"targets": [...], "dataset": ..., "method": ..., "fit": {...}}}``, where ``fit`` has the model, the engine,
    settings of both, contexts (name to family settings), iterations, burn_in and thin. It also has MISSING and CHAINS
    if the row sets them. A baseline has no length, but ``of``: the run whose model it uses, or None.

    Raises
    ------
    ValueError
        As in :func:`read_table`, and for a dataset, engine, context or setting that is not in the configuration.
    """
    runs: dict[str, dict[str, Any]] = {}
    for row in read_table(path, schema, key="run"):
        where = f"{path}, run {row['run']!r}"
        own = own_contexts(config) if row["dataset"] == "mine" else {}
        families = {**config["contexts"], **own}
        is_all = row["contexts"] == "*" and row["dataset"] == "mine"
        contexts = list(own) if is_all else [name for name in row["contexts"].split("+") if name]
        _refuse_unknown(where, [row["dataset"]], config["corpora"], "dataset ")
        _refuse_unknown(where, contexts, families, "context ")
        if len(set(contexts)) < len(contexts):
            raise ValueError(f"{where}: contexts {row['contexts']!r} name one twice")
        is_baseline = row["engine"] not in ENGINES
        if is_baseline and row["model"]:
            hint = nearest(row["engine"], ENGINES)
            raise ValueError(f"{where}: engine {row['engine']!r} fits no model such as {row['model']!r}{hint}")
        if not is_baseline and not row["model"]:
            raise ValueError(f"{where}: model is empty; engine {row['engine']!r} fits one")
        settings = dict(config["baselines" if is_baseline else "engines"].get(row["engine"], {}))
        settings |= config["models"].get(row["model"], {})
        length = {"of": None} if is_baseline else dict(config["fit"][row["dataset"]])
        if row["targets"] == "icml2014_table1_sensitivity" and not is_baseline:
            length |= config["table1_sensitivity"]["length"]
        if not is_baseline and row["engine"] not in KEEP_SAMPLES:
            length |= {"burn_in": None, "thin": 1}
        of_length = {*length, MISSING} if is_baseline else {*length, MISSING, CHAINS}
        for name, value in parse_settings(split_settings(row["settings"]), where).items():
            (length if name in of_length else settings)[name] = value
        if settings.get("n_shards") is not None:
            length["spark"] = dict(config["spark"])
        if row["dataset"] in chosen:
            runs[row["run"]] = {
                "targets": row["targets"].split(),
                "dataset": row["dataset"],
                "method": row["method"],
                "fit": {
                    **({} if is_baseline else {"model": row["model"]}),
                    "engine": row["engine"],
                    "settings": settings,
                    "contexts": {name: dict(families[name]) for name in contexts},
                    **length,
                },
            }
    return runs


def variants(runs: Mapping[str, Mapping[str, Any]], engine: str) -> list[dict[str, Any]]:
    """Return one example of settings per combination of choices with which runs use an engine.

    Settings that are numbers are not choices, because the compiled kernels are the same for all numbers. Each result
    also has the name of the model.
    """
    found: dict[str, dict[str, Any]] = {}
    for run in runs.values():
        if run["fit"]["engine"] == engine:
            settings = {"model": run["fit"]["model"], **run["fit"]["settings"]}
            choices = {name: value for name, value in settings.items() if isinstance(value, str | bool | list)}
            found.setdefault(json.dumps(choices, sort_keys=True), settings)
    return list(found.values())


# -- checks of runs -----------------------------------------------------------------------------------------------
def check_runs(
    path: str | os.PathLike[str],
    runs: Mapping[str, Mapping[str, Any]],
    config: Mapping[str, Any],
    targets: Iterable[str],
) -> None:
    """Raise ValueError for the first run of :func:`read_experiments` that its job would reject.

    A run is rejected if its dataset lacks a context, if its length is invalid, or if its model or engine cannot be
    built. Unknown targets are also rejected. Loading the engines takes a second; nothing is compiled.

    Parameters
    ----------
    path : path of the experiments table, for messages.
    targets : names of all tables and figures.
    """
    from mc2core.corpus import subsets
    from mc2core.inference.base import run_length
    from mc2core.inference.registry import specify
    from mc2papers.baselines.registry import BASELINES

    _check_named(config)
    known = [*targets, SCORES]
    for name, run in runs.items():
        where, fit, dataset = f"{path}, run {name!r}", run["fit"], run["dataset"]
        _refuse_unknown(where, run["targets"], known, "target ")
        _check_contexts(where, dataset, config["corpora"][dataset], fit["contexts"])
        try:
            subsets.check_share(fit.get(MISSING, 0.0))
            if fit["engine"] in BASELINES:
                _check_baseline(run, runs)
            else:
                choice("engine", fit["engine"], [*ENGINES, *BASELINES])
                _, engine = specify(fit["model"], engine_of(fit["engine"]), fit["settings"], fit["contexts"])
                run_length(engine, fit["iterations"], fit["burn_in"], fit["thin"])
                whole(CHAINS, fit.get(CHAINS, 1))
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _check_named(config: Mapping[str, Any]) -> None:
    """Raise ValueError for an unknown model, engine or baseline, and for unknown settings."""
    from mc2core.inference.registry import ENGINES, MODELS, engine_class, model_class
    from mc2papers.baselines.registry import BASELINES

    for part, names, class_of in (
        ("models", MODELS, model_class),
        ("engines", ENGINES, engine_class),
        ("baselines", BASELINES, BASELINES.__getitem__),
    ):
        _refuse_unknown(f"configuration: {part}", config[part], names)
        for name, settings in config[part].items():
            _refuse_unknown(f"configuration: {part}, {name}", settings, inspect.signature(class_of(name)).parameters)


def _check_baseline(run: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> None:
    from mc2papers.baselines.registry import make_baseline

    fit = run["fit"]
    baseline = make_baseline(fit["engine"], fit["settings"])
    for name, family in fit["contexts"].items():
        if not baseline.takes_contexts:
            raise ValueError(f"{baseline.title} clusters words only; it cannot use context {name!r}")
        if family["family"] == "normal_gamma":
            raise ValueError(f"{baseline.title} takes contexts of counts, but {name!r} is a number for each document")
    if not baseline.models:
        if fit["of"] is not None:
            raise ValueError(f"{baseline.title} uses no model of another run, so of must be empty, not {fit['of']!r}")
        return
    fitting = [
        name
        for name, one in runs.items()
        if one["dataset"] == run["dataset"] and one["fit"].get("model") in baseline.models
        if one["fit"]["contexts"] == fit["contexts"]
    ]
    if fit["of"] not in fitting:
        raise ValueError(
            f"of is {fit['of']!r}; for {baseline.title}, it must name a run on {run['dataset']} of the model "
            f"{' or '.join(baseline.models)}: {', '.join(fitting) or 'the experiments table has none'}"
        )


def _check_contexts(
    where: str, dataset: str, corpus: Mapping[str, Any], families: Mapping[str, Mapping[str, Any]]
) -> None:
    from mc2core.corpus.checks import FAMILY_OF_KIND
    from mc2papers.datasets.catalogue import contexts_of

    offered = contexts_of(dataset, corpus)
    for context, family in families.items():
        if context not in offered:
            raise ValueError(f"{where}: context {context!r} is not in corpora.{dataset}, which has {list(offered)}")
        wanted = FAMILY_OF_KIND[offered[context]]
        if family["family"] != wanted:
            raise ValueError(
                f"{where}: context {context!r} has the family {family['family']}, but it is of kind "
                f"{offered[context]!r} in corpora.{dataset}, which takes {wanted}"
            )


@dataclass(frozen=True)
class Configuration:
    """The configuration of a workflow run: its settings, its datasets, and the experiments on these datasets.

    An experiment is called a run in this class.

    Attributes
    ----------
    config : the settings, checked against the schema
    chosen : names of the datasets that are used
    runs : result of :func:`read_experiments`, without omitted runs
    kinds : kinds of files that a target needs (:data:`mc2papers.inputs.KINDS`), by the name of the target
    asked : names of all requested datasets, including omitted datasets
    sources : rows of datasets.tsv
    notes : messages on what is omitted, and why
    """

    config: Mapping[str, Any]
    chosen: Sequence[str]
    runs: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Collection[str]] = field(default_factory=dict)
    asked: Sequence[str] = ()
    sources: Sequence[Mapping[str, str]] = ()
    notes: Sequence[str] = ()

    @property
    def seeds(self) -> range:
        """Return the default seeds of runs."""
        return range(self.config["seeds"])

    def seeds_of(self, run: str) -> range:
        """Return the seeds of a run.

        Figure 2 of ICML14 and runs of NIPS12 (except W1000) have more seeds, because their fits take only seconds.
        MLlib's LDA has one seed, because a fit takes minutes.
        """
        if self.is_on_spark(run):
            return range(1)
        targets, dataset = self.runs[run]["targets"], self.runs[run]["dataset"]
        for part in ("figure2", "figure2_sensitivity", "table1_sensitivity"):
            if f"icml2014_{part}" in targets:
                return range(self.config[part]["seeds"])
        is_cheap = dataset != "w1000" and any(target.startswith("nips2012_") for target in targets)
        return range(self.config["nips2012"]["seeds"]) if is_cheap else self.seeds

    def is_on_spark(self, run: str) -> bool:
        """Return whether the run is a baseline that Spark fits."""
        return self.runs[run]["fit"]["engine"] in ON_SPARK

    def is_short(self, run: str) -> bool:
        """Return whether fits of the run take little time: the corpus is small, and Spark is not used.

        Small corpora are simulated corpora of less than half size, excerpts of real data, and real corpora in SMALL.
        """
        dataset = self.runs[run]["dataset"]
        corpus = self.config["corpora"][dataset]
        is_drawn_small = corpus["source"] == "simulated" and corpus.get("scale", 0) < 0.5
        is_small = is_drawn_small or corpus["source"] == "real excerpt" or dataset in SMALL
        return is_small and not self.is_on_spark(run)

    def wants(self, run: str, kind: str) -> bool:
        """Return whether a target of the run needs files of this kind."""
        return any(kind in self.kinds.get(target, ()) for target in self.runs[run]["targets"])

    def groups(self) -> list[list[str]]:
        """Return groups of runs; one job fits all runs and seeds of a group. Other runs have one job per fit.

        Short fits to one corpus for the same targets are a group, because many of them take less time than the start of
        a job. All fits on Spark are a group. Every other baseline is a group of its own. A baseline that clusters the
        result of another run is never in the group of this run.
        """
        groups: dict[Any, list[str]] = {}
        for name, run in self.runs.items():
            key: Any = name if name in self.baselines else None
            if self.is_on_spark(name):
                key = "Spark"
            elif self.is_short(name):
                key = run["dataset"], frozenset(run["targets"]), bool(run["fit"].get("of"))
            if key is not None:
                groups.setdefault(key, []).append(name)
        return list(groups.values())

    def fits_of(self, runs: Iterable[str], seeds: Iterable[int] | None = None) -> dict[str, Any]:
        """Return runs in the form that :func:`mc2papers.fits.fit_runs` needs, with the given seeds or all seeds."""
        return {
            run: {**self.runs[run], "targets": None}  # targets do not change a fit
            | {
                "seeds": list(self.seeds_of(run) if seeds is None else seeds),
                "result": self.result_of(run),
                "follows_labels": self.wants(run, "traces"),
                "n_snapshots": self.config["curves"]["n_snapshots"] if self.wants(run, "curves") else 0,
                "estimators": self.config["estimators"] if self.is_scored_at_once(run) else [],
            }
            for run in runs
        }

    def scores_of(self, run: str, seed: int) -> dict[str, Any]:
        """Return a fit in the form that :func:`mc2papers.fits.score_runs` needs."""
        return {run: self.fits_of([run], [seed])[run] | {"estimators": self.config["estimators"]}}

    def is_scored_at_once(self, run: str) -> bool:
        """Return whether the job that fits the run also scores it; a separate job can score again without a new fit."""
        return self.is_short(run) and self.wants(run, "scores")

    def files_of(self, run: str, seeds: Iterable[int | str]) -> list[str]:
        """Return the files that the job of a run writes."""
        files = [f"fits/{run}/{{seed}}/{self.result_of(run)}", f"fits/{run}/{{seed}}/provenance.json"]
        if run not in self.baselines:
            files.append(f"fits/{run}/{{seed}}/trace.tsv")
            files += [f"snapshots/{run}/{{seed}}/snapshots.npz"] if self.wants(run, "curves") else []
        files += [f"scores/{run}/{{seed}}.json"] if self.is_scored_at_once(run) else []
        return [f"results/{file.format(seed=seed)}" for seed in seeds for file in files]

    def corpora_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the entries of ``corpora`` for the chosen datasets in ``names``."""
        return {name: self.config["corpora"][name] for name in names if name in self.chosen}

    def lengths_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the lengths of fits in the configuration for the chosen datasets in ``names``."""
        return {name: self.config["fit"][name] for name in names if name in self.chosen}

    @property
    def baselines(self) -> list[str]:
        """Return the runs of baselines, which are methods that the papers compare with."""
        return [name for name, run in self.runs.items() if run["fit"]["engine"] not in ENGINES]

    def result_of(self, run: str) -> str:
        """Return the name of the file that a fit of the run writes: "posterior.npz" or "assignments.tsv"."""
        has_model = run not in self.baselines or self.runs[run]["fit"]["engine"] in LEAVE_MODELS
        return "posterior.npz" if has_model else "assignments.tsv"

    def runs_of(self, target: str) -> list[str]:
        """Return the runs that a target uses. Raises ValueError if there is none on the chosen datasets."""
        runs = [name for name, run in self.runs.items() if target in run["targets"]]
        if not runs:
            raise ValueError(f"{target} has no run in config/experiments.tsv on the datasets of this configuration")
        return runs


def read_configuration(
    config: Mapping[str, Any],
    schemas: Sequence[Path],
    experiments: Path,
    catalogue: Path,
    kinds: Mapping[str, Collection[str]],
    *,
    lack: str | None = None,
    builds: bool = True,
    must_exist: bool = True,
) -> Configuration:
    """Check a complete configuration and its two tables, and return them as a :class:`Configuration`.

    Parameters
    ----------
    schemas : schemas of the configuration, of a row of datasets.tsv and of a row of experiments.tsv
    kinds : see :class:`Configuration`
    lack : reason why Spark cannot be used; None or "" if it can
    builds : whether to build the model and engine of each run as a check, which takes a second
    must_exist : whether files of the user must exist; False if another workflow makes them
    """
    schema, of_files, of_runs = map(read_yaml, schemas)
    config = with_numbers(config)
    check(config, schema, "configuration")
    check_lengths(config)
    check_data_folder(config)
    asked = choose_datasets(config)
    sources = read_table(catalogue, of_files, key="file")
    runs, lacking = leave_out_runs(read_experiments(experiments, of_runs, config, config["corpora"]), config)
    if builds:
        check_runs(experiments, runs, config, kinds)
    check_files(config, sources, asked)
    check_own_files(config, asked, must_exist)
    chosen, left_out = leave_out(config, schema, sources, asked)
    check_word(config, chosen)
    of_chosen = {name: run for name, run in runs.items() if run["dataset"] in chosen}
    runs, without_spark = leave_out_spark(of_chosen, config, lack)
    notes = [*left_out, *lacking, *without_spark]
    return Configuration(config, chosen, runs, kinds, asked, sources, notes)
