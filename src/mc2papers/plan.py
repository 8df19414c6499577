"""Plans: configuration and sheets, checked so that a slip stops a run before its first job.

A validator of JSON Schema answers with the schema around a fault; here each fault is one sentence.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mc2core.base.checks import did_you_mean, nearest
from mc2core.base.kinds import FAMILY_OF_KIND
from mc2core.base.records import csv_rows
from mc2core.base.settings import parse_settings, split_settings
from mc2papers import plain_yaml
from mc2papers.schemas import control_character, resolved


def check_mirror(config: Mapping[str, Any]) -> None:
    """ValueError for a ``mirror`` that is no folder."""
    if config["mirror"] and not Path(config["mirror"]).is_dir():
        raise ValueError(
            f"configuration: mirror: {str(config['mirror'])!r} is no folder; a folder of source files is needed, "
            "or '' for none"
        )


def read_yaml(path: str | os.PathLike[str]) -> Any:
    """The content of a YAML file; ValueError naming the file and the place for one that cannot be read."""
    return plain_yaml.read(path)


def check_config_files(arguments: Iterable[str]) -> None:
    """SystemExit with one sentence for a file after ``--configfile`` or ``--configfiles`` that cannot be read.

    For the profile that Snakemake reads first: itself it answers with a traceback, or names no file.
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


def check_word(config: Mapping[str, Any], corpora: str | os.PathLike[str] = "results/corpora") -> None:
    """ValueError where ``figure4.word`` is none of the PNAS corpus; only looked at where that is there already."""
    word, vocabulary = config["figure4"]["word"], Path(corpora) / "pnas/train/vocabulary.txt"
    if word and vocabulary.is_file():
        known = vocabulary.read_text(encoding="utf-8").split("\n")
        if word not in known:
            hint = did_you_mean(word, known)
            raise ValueError(f"configuration: figure4: word: {word!r} is not in the vocabulary of pnas{hint}")


def check_targets(arguments: Iterable[str], known: Sequence[str]) -> None:
    """ValueError for an argument of Snakemake that is nearly one of the targets.

    Itself it says that no rule makes such a file. What is no name at all (an option, a file, a setting) is not looked
    at, nor what is near to none.
    """
    for argument in arguments:
        is_name = re.fullmatch(r"[A-Za-z]\w{5,}", argument) and argument not in known
        if is_name and (hint := did_you_mean(argument, known, likeness=0.8)):
            raise ValueError(f"target {argument!r} is not known{hint}")


def read_sheet(path: str | os.PathLike[str], schema: Mapping[str, Any], key: str) -> list[dict[str, str]]:
    """Rows of a tab-separated sheet as dicts of text.

    Parameters
    ----------
    schema : JSON Schema of one row; its ``properties`` are the columns allowed, ``required`` those that must be there.
    key : the column that names a row; a name may occur once.

    Raises
    ------
    ValueError
        The file, a column or every row is missing, a column is unknown, a row is too short or too long, a field is not
        of its form or holds a control character, or a name occurs twice.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    rows = csv_rows(path, "\t")
    _, columns = next(rows, (0, []))
    for place, column in enumerate(columns):
        if column not in schema["properties"]:
            raise ValueError(f"{path}: column {column!r} is not known{nearest(column, schema['properties'])}")
        if column in columns[:place]:
            raise ValueError(f"{path}: column {column!r} is there twice")
    for column in schema.get("required", ()):
        if column not in columns:
            raise ValueError(f"{path}: column {column!r} is missing")
    seen: dict[str, int] = {}
    table = []
    for line, fields in rows:
        where, row = f"{path}, line {line}", dict(zip(columns, fields, strict=True))
        for column, rule in schema["properties"].items():
            field = row.get(column, "")
            pattern = rule.get("pattern", ".+" if rule.get("minLength") else ".*")
            if character := control_character(field):
                raise ValueError(f"{where}: {column} {field!r} holds {character}")
            if not re.fullmatch(pattern, field):
                raise ValueError(
                    f"{where}: {column} {field!r} is not of the form {pattern} ({rule['description'].rstrip('.')})"
                )
        if row[key] in seen:
            raise ValueError(f"{where}: {key} {row[key]!r} is the name of line {seen[row[key]]} too")
        seen[row[key]] = line
        table.append(row)
    if not table:
        raise ValueError(f"{path} has no row below its header")
    return table


#: engines of the library; all others are baselines. The registries say so too, but take a second to load.
ENGINES = ("fastex", "gibbs", "svi")


def choose_datasets(config: Mapping[str, Any]) -> list[str]:
    """The ``datasets`` of a configuration, a list or text with commas; ValueError for one unknown or named twice."""
    chosen = config["datasets"]
    names = [name.strip() for name in chosen.split(",")] if isinstance(chosen, str) else list(chosen)
    for name in names:
        if name not in config["corpora"]:
            raise ValueError(f"configuration: datasets: {name!r} is not known{nearest(name, config['corpora'])}")
        if names.count(name) > 1:
            raise ValueError(f"configuration: datasets: {name!r} is named twice")
    return names


def leave_out(
    config: Mapping[str, Any],
    schema: Mapping[str, Any],
    sheet: Iterable[Mapping[str, str]],
    chosen: Sequence[str],
    fetched: str | os.PathLike[str] = "results/sources",
) -> tuple[list[str], list[str]]:
    """The chosen datasets whose files can be had, and for each of the others a sentence that says why not.

    Looked at are those that can only be real (their schema knows no other source), such as the labelled corpora: each
    of their files of datasets.tsv must be in the mirror or, fetched before, in ``fetched``. ValueError where no dataset
    remains.
    """
    corpora = resolved(schema["properties"]["corpora"], schema)["properties"]
    sources = {name: resolved(corpora[name]["properties"]["source"], schema).get("enum") for name in chosen}
    lacking: dict[str, list[Mapping[str, str]]] = {}
    for row in sheet:
        places = [Path(fetched) / row["dataset"] / row["file"]]
        if config["mirror"]:
            places.append(Path(config["mirror"]) / row["mirror"])
        if sources.get(row["dataset"]) == ["real"] and not any(place.is_file() for place in places):
            lacking.setdefault(row["dataset"], []).append(row)
    reasons: dict[str, str] = {}
    for dataset, rows in lacking.items():
        files = " ".join(f"{fetched}/{dataset}/{row['file']}" for row in rows)
        can_fetch = all(row["addresses"] for row in rows)
        how = f"'snakemake {files}' fetches it" if can_fetch else "it has no official address"
        wanted = ", ".join(row["mirror"] for row in rows)
        reasons[dataset] = f"{dataset} is left out: no mirror (--config mirror=FOLDER) has {wanted}; {how}"
    kept = [name for name in chosen if name not in reasons]
    if not kept:
        raise ValueError(f"configuration: datasets: none remains; {'; '.join(reasons.values())}")
    return kept, [reasons[name] for name in chosen if name in reasons]


def leave_out_runs(
    runs: Mapping[str, Any], config: Mapping[str, Any], schema: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """The runs of :func:`read_experiments` whose contexts their corpora have, and why each of the others is left out.

    A corpus read from files has the ``contexts`` that the plan names for it; a row may need one that it could have.
    """
    corpora = resolved(schema["properties"]["corpora"], schema)["properties"]
    kept, reasons = {}, []
    for name, run in runs.items():
        corpus = config["corpora"][run["dataset"]]
        lacking = []
        if corpus["source"] in ("real", "real excerpt") and "contexts" in corpus:
            known = resolved(corpora[run["dataset"]]["properties"]["contexts"], schema)["items"]["enum"]
            lacking = [one for one in run["fit"]["contexts"] if one in known and one not in corpus["contexts"]]
        if lacking:
            has = ", ".join(corpus["contexts"]) or "none"
            reasons.append(f"{name} is left out: corpora.{run['dataset']} has no context {lacking[0]!r}; it has: {has}")
        else:
            kept[name] = run
    return kept, reasons


def leave_out_spark(
    runs: Mapping[str, Any], config: Mapping[str, Any], lack: str | None
) -> tuple[dict[str, Any], list[str]]:
    """The runs that can be fitted where Spark lacks what the sentence says, and why each of the others is left out.

    MLlib's LDA takes minutes on small corpora; it is fitted on those that the plan names.
    """
    kept, reasons = {}, []
    for name, run in runs.items():
        is_baseline = run["fit"]["engine"] in ON_SPARK
        if is_baseline and run["dataset"] not in config["table2"]["lda"]:
            reasons.append(f"{name} is left out: {run['dataset']} is not in table2.lda of the plan")
        elif lack and (is_baseline or run["fit"]["settings"].get("n_shards") is not None):
            reasons.append(f"{name} is left out: {lack}")
        else:
            kept[name] = run
    return kept, reasons


#: setting of a row: share of the documents whose contexts its fits do without (mc2core.corpus.subsets.without_contexts)
MISSING = "missing"
#: setting of a row: independent runs of each of its fits (mc2core.fit)
CHAINS = "chains"
#: keys of a corpus in the plan that name files of datasets.tsv
FILE_KEYS = ("files", "writers", "links", "targets", "vocabulary")


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


#: keys of a corpus in the plan that name files of a user's own, and those of them that it cannot do without
OWN_KEYS, NEEDED_KEYS = ("file", "folder", "vocabulary", "stop_words"), ("file", "folder")


def own_paths(corpus: Mapping[str, Any]) -> dict[str, str | None]:
    """Files and folders of a user's own that an entry of the plan names, by OWN_KEYS; None where one is not given."""
    from mc2core.corpus.readers.reading import is_file_of_words

    paths = {key: corpus[key] for key in OWN_KEYS if key in corpus}
    if not is_file_of_words(paths.get("stop_words")):
        paths.pop("stop_words", None)
    return paths


def check_own_files(config: Mapping[str, Any], chosen: Iterable[str], must_exist: bool = True) -> None:
    """ValueError for the first file or folder of a user's own that a chosen corpus lacks in the plan or on the disk.

    Snakemake does not miss the input of what is made already: results of another file would pass for those of this one.

    must_exist : look on the disk too.
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
    """Family settings of each context of ``corpora.mine``: the family of its kind, with the prior that ``contexts`` of
    the plan has under its name, if that is one of this family.
    """
    from mc2core.corpus.building.settings import parse_contexts  # a fifth of a second to load

    families = {}
    for name, column in parse_contexts(config["corpora"]["mine"]["contexts"]).items():
        family, named = FAMILY_OF_KIND[column.kind], config["contexts"].get(name, {})
        families[name] = dict(named) if named.get("family") == family else {"family": family}
    return families


def read_experiments(
    path: str | os.PathLike[str], schema: Mapping[str, Any], config: Mapping[str, Any], chosen: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Rows of ``experiments.tsv`` on the chosen datasets, with all that defines each fit looked up in the plan.

    Returns
    -------
    ``{run: {"targets": [...], "dataset": ..., "method": ..., "fit": {...}}}`` where ``fit`` holds model, engine,
    settings of both, contexts (name to family settings), iterations, burn_in and thin, and MISSING and CHAINS where the
    row sets them. A baseline has no length: it has ``of``, the run whose model it clusters by, or None.

    Raises
    ------
    ValueError
        What :func:`read_sheet` refuses; a dataset, engine, context or setting that the plan does not have.
    """
    runs: dict[str, dict[str, Any]] = {}
    for row in read_sheet(path, schema, key="run"):
        where = f"{path}, run {row['run']!r}"
        own = own_contexts(config) if row["dataset"] == "mine" else {}
        families = {**config["contexts"], **own}
        is_all = row["contexts"] == "*" and row["dataset"] == "mine"
        contexts = list(own) if is_all else [name for name in row["contexts"].split("+") if name]
        for kind, name, known in (
            ("dataset", row["dataset"], config["corpora"]),
            *(("context", name, families) for name in contexts),
        ):
            if name not in known:
                raise ValueError(f"{where}: {kind} {name!r} is not known{nearest(name, known)}")
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
        if row["engine"] in ("fastex", "svi"):  # they keep their last state alone
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
    """Settings with which runs of :func:`read_experiments` use an engine, one for each combination of choices.

    Numbers are no choices: a kernel compiled for one does for all. Each has the name of its model beside them.
    """
    found: dict[str, dict[str, Any]] = {}
    for run in runs.values():
        if run["fit"]["engine"] == engine:
            settings = {"model": run["fit"]["model"], **run["fit"]["settings"]}
            choices = {name: value for name, value in settings.items() if isinstance(value, str | bool | list)}
            found.setdefault(json.dumps(choices, sort_keys=True), settings)
    return list(found.values())


#: baselines that leave a model; the others leave assignments. Their classes say so too, but take a second to load.
LEAVE_MODELS = ("lda", "mllib_lda")
#: baselines that Spark runs; fitted once, since a fit takes as long as the others of a target together
ON_SPARK = ("mllib_lda",)


@dataclass(frozen=True)
class Plan:
    """A run: the configuration, the datasets chosen of it, and the fits of the sheet on them.

    Attributes
    ----------
    config : as checked against its schema
    chosen : names of datasets
    runs : of :func:`read_experiments`
    kinds : of files that a target needs (:data:`mc2papers.inputs.KINDS`), by its name
    """

    config: Mapping[str, Any]
    chosen: Sequence[str]
    runs: Mapping[str, Mapping[str, Any]]
    kinds: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def seeds(self) -> range:
        """Of the fits of most runs."""
        return range(self.config["seeds"])

    def seeds_of(self, run: str) -> range:
        """Of the fits of a run; ICML14 figure 2 has more, since its claims are on shares of fits, which are cheap."""
        if self.is_on_spark(run):
            return range(1)
        return range(self.config["figure2"]["seeds"]) if "icml2014_figure2" in self.runs[run]["targets"] else self.seeds

    def is_on_spark(self, run: str) -> bool:
        """Whether it is of a baseline that Spark fits."""
        return self.runs[run]["fit"]["engine"] in ON_SPARK

    def is_short(self, run: str) -> bool:
        """Whether its fits are expected to be short: to a corpus drawn at less than half its size, and not on Spark."""
        corpus = self.config["corpora"][self.runs[run]["dataset"]]
        return corpus["source"] == "simulated" and corpus.get("scale", 0) < 0.5 and not self.is_on_spark(run)

    def wants(self, run: str, kind: str) -> bool:
        """Whether a target of the run needs files of this kind."""
        return any(kind in self.kinds.get(target, ()) for target in self.runs[run]["targets"])

    def groups(self) -> list[list[str]]:
        """Runs that are fitted together, with all their seeds, in one job; each fit of the other runs is a job.

        Short fits to one corpus for the same targets are together, since many take less time than the start of a job;
        so are all fits on Spark. Each other baseline is a group. Models that baselines cluster by are of other groups.
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
        """Runs as :func:`mc2papers.fits.fit_runs` takes them, with some seeds or all of theirs."""
        return {
            run: {**self.runs[run], "targets": None}  # which change no fit
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
        """A fit as :func:`mc2papers.fits.score_runs` takes it."""
        return {run: self.fits_of([run], [seed])[run] | {"estimators": self.config["estimators"]}}

    def is_scored_at_once(self, run: str) -> bool:
        """Whether its fits are scored by the job that makes them; else they are not fitted again to be scored anew."""
        return self.is_short(run) and self.wants(run, "scores")

    def files_of(self, run: str, seeds: Iterable[int | str]) -> list[str]:
        """What the job that fits a run leaves."""
        files = [f"fits/{run}/{{seed}}/{self.result_of(run)}", f"fits/{run}/{{seed}}/provenance.json"]
        if run not in self.baselines:
            files.append(f"fits/{run}/{{seed}}/trace.tsv")
            files += [f"snapshots/{run}/{{seed}}/snapshots.npz"] if self.wants(run, "curves") else []
        files += [f"scores/{run}/{{seed}}.json"] if self.is_scored_at_once(run) else []
        return [f"results/{file.format(seed=seed)}" for seed in seeds for file in files]

    def corpora_of(self, names: Iterable[str]) -> dict[str, Any]:
        """The entries of those of some datasets that were chosen."""
        return {name: self.config["corpora"][name] for name in names if name in self.chosen}

    def lengths_of(self, names: Iterable[str]) -> dict[str, Any]:
        """Lengths of the fits to those of some datasets that were chosen, where a row does not say otherwise."""
        return {name: self.config["fit"][name] for name in names if name in self.chosen}

    @property
    def baselines(self) -> list[str]:
        """Runs of methods that the papers compare with, which are no engines."""
        return [name for name, run in self.runs.items() if run["fit"]["engine"] not in ENGINES]

    def result_of(self, run: str) -> str:
        """File that a fit of a run leaves: "posterior.npz" or "assignments.tsv"."""
        has_model = run not in self.baselines or self.runs[run]["fit"]["engine"] in LEAVE_MODELS
        return "posterior.npz" if has_model else "assignments.tsv"

    def runs_of(self, target: str) -> list[str]:
        """Runs that feed a target. ValueError where the chosen datasets leave none."""
        runs = [name for name, run in self.runs.items() if target in run["targets"]]
        if not runs:
            raise ValueError(f"{target} has no run in config/experiments.tsv on the datasets of this plan")
        return runs
