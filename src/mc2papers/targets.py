"""The registry of targets, which are the tables and figures of the workflow.

A module ``mc2papers.<paper>.<item>`` with a variable ``TARGET`` defines the target ``<paper>_<item>``. The workflow
makes the rule, the entry in the report and the claims from this variable. The item of a paper is ``table`` or
``figure`` with a number, or ``running_time`` (numbers in the text of UAI16). Items of NO_PAPER, such as your own
studies, may have any name. A study has a figure and a table: ``table1_sensitivity`` and ``figure2_sensitivity`` vary
choices that a paper does not print, and ``contexts_help`` shows the gain from each context of real corpora.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mc2papers.report.extent import extent_of_runs
from mc2papers.report.fidelity import departures

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mc2papers.configuration import Configuration
    from mc2papers.report.claims import Claim

#: packages of targets and their titles in the report, in the order of the report
PAPERS = {
    "icml2014": "ICML 2014",
    "uai2016": "UAI 2016",
    "nips2012": "NIPS 2012",
    "labelled": "Real labelled corpora (ours)",
    "studies": "Further studies",
}
#: packages of targets that belong to no paper; the list of departures does not contain them
NO_PAPER = ("labelled", "studies")
_ITEM = re.compile(r"(table|figure)[0-9]+(_sensitivity)?|running_time")
_ITEM_OF_NO_PAPER = re.compile(r"[a-z][a-z0-9_]*")

#: paths by the names of ``Target.inputs``; "paper" is the table of numbers printed in the paper
Files = Mapping[str, Sequence[str]]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Built:
    """Results of a target.

    Attributes
    ----------
    data : the numbers of the CSV file; for a figure, the plotted numbers
    shown : for a table, its cells as formatted text
    figure : for a figure, a Matplotlib figure, or the SVG text of a prepared drawing
    claims : claims of the paper with their verdicts
    conclusion : for a study, its conclusion in two sentences, shown as the first note below its table
    """

    data: pd.DataFrame
    shown: pd.DataFrame | None = None
    figure: Figure | str | None = None
    claims: Sequence[Claim] = ()
    conclusion: str = ""


def options_of(*names: str, **entries: str) -> Callable[[Configuration, str], dict[str, Any]]:
    """Return the ``options`` function of a target that uses these parts of the configuration.

    names : "corpora" or "lengths" for entries of the target's datasets, or "runs" for the target's runs
    entries : name of an option with a key of the configuration, such as "fit.letters"
    """

    def options(configuration: Configuration, target: str) -> dict[str, Any]:
        parts: dict[str, Callable[[], Any]] = {
            "corpora": lambda: configuration.corpora_of(registry()[target].datasets),
            "lengths": lambda: configuration.lengths_of(registry()[target].datasets),
            "runs": lambda: {run: configuration.runs[run] for run in configuration.runs_of(target)},
        }
        config = configuration.config
        found = {name: functools.reduce(getitem, path.split("."), config) for name, path in entries.items()}
        return found | {name: parts[name]() for name in names}

    return options


@dataclass(frozen=True)
class Target:
    """Definition of a table or figure. Every job imports its module, so only ``build`` should import slow packages.

    Attributes
    ----------
    title : title of the table's files, also named in the log of the job
    shows : two to four words for the list of targets in the report
    build : ``build(files, options) -> Built``
    caption : ``caption(options)`` returns reStructuredText for the report
    inputs : kinds of input files (:data:`mc2papers.inputs.KINDS`) by their names in ``files``
    datasets : datasets that the target can use; at least one is needed. Empty if the target needs no corpus
    is_real : whether the target uses only real datasets
    draws : datasets of :data:`mc2papers.datasets.origins.ORIGINS` that the target simulates itself
    options : ``options(configuration, name)`` returns the parts of the configuration that ``build`` and ``caption``
        need, as values that JSON can store
    extent : ``extent(configuration, name)`` returns the amount of data and computation behind its claims, by dataset
        (:func:`mc2papers.report.extent.extent_of_runs`)
    notes : lines below a table
    has_paper : whether the file :attr:`printed` exists; it is "paper" in ``files``
    has_claims : whether claims of the paper are judged
    by_classes : whether these claims use the classes of the corpora
    is_study : whether the target has both a figure and a table
    memory_mb : memory of the job in MB
    name : name of the target, set by the registry
    """

    title: str
    shows: str
    build: Callable[[Files, Options], Built]
    caption: Callable[[Options], str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    datasets: tuple[str, ...] = ()
    is_real: bool = False
    draws: tuple[str, ...] = ()
    options: Callable[[Configuration, str], dict[str, Any]] = field(default_factory=options_of)
    extent: Callable[[Configuration, str], dict[str, dict[str, Any]]] = extent_of_runs
    notes: tuple[str, ...] = ()
    has_paper: bool = False
    has_claims: bool = True
    by_classes: bool = False
    is_study: bool = False
    memory_mb: int = 500
    name: str = ""

    @property
    def paper(self) -> str:
        """Name of the package that contains the target (a key of PAPERS)."""
        return self.name.partition("_")[0]

    @property
    def item(self) -> str:
        """Number of the table or figure as text, such as "table 1"."""
        return re.sub(r"([0-9]+)", r" \1", self.name.partition("_")[2]).replace("_", " ")

    @property
    def is_table(self) -> bool:
        """Whether the target is a table, not a figure or a study."""
        return not self.item.startswith("figure") and not self.is_study

    @property
    def printed(self) -> str:
        """Name of the file in ``workflow/paper`` with the numbers that the paper prints.

        A sensitivity study uses the file of its table or figure.
        """
        return f"{self.name.removesuffix('_sensitivity')}.csv"

    @property
    def module(self) -> str:
        """Name of the module that defines the target."""
        return f"{__package__}.{self.name.replace('_', '.', 1)}"

    def among(self, names: Collection[str], configuration: Configuration) -> list[str]:
        """Return the target's datasets in ``names``, without simulated datasets if ``is_real``."""
        corpora = configuration.config["corpora"]
        found = [name for name in self.datasets if name in names]
        return [name for name in found if not self.is_real or corpora[name]["source"] != "simulated"]

    def sources(self, configuration: Configuration) -> dict[str, dict[str, str]]:
        """Return ``source``, ``drawn_from`` and ``extent`` of each dataset on which claims are judged."""
        said = ("source", "drawn_from")
        chosen = configuration.corpora_of(self.among(configuration.chosen, configuration)).items()
        known = {name: {key: entry[key] for key in said if key in entry} for name, entry in chosen}
        known |= {name: {"source": "simulated"} for name in self.draws}
        extent = self.extent(configuration, self.name) if self.has_claims else {}
        return {name: one | {"extent": extent.get(name, {})} for name, one in known.items()}

    def corpora(self, configuration: Configuration) -> list[str]:
        """Return the folders of the corpora on which claims are judged."""
        if not self.has_claims:
            return []
        used = {run["dataset"] for run in configuration.runs.values() if self.name in run["targets"]}
        return [f"results/corpora/{name}" for name in self.among(configuration.chosen, configuration) if name in used]

    def outputs(self, folder: str = "results") -> dict[str, str]:
        """Return the output files of the target by suffix, and "claims"; the report shows the first file."""
        stem = f"{folder}/{self.paper}/{self.name}"
        kinds = ("html", "csv", "md", "tex") if self.is_table else ("png", "pdf", "csv")
        if self.is_study:
            kinds = (*kinds, "html", "md", "tex")
        files = {kind: f"{stem}.{kind}" for kind in kinds}
        return files | ({"claims": f"{stem}_claims.csv"} if self.has_claims else {})


@functools.cache
def registry() -> dict[str, Target]:
    """Return all targets by name, with papers in the order of PAPERS.

    Raises ValueError if a module with the name of an item has no TARGET, or if a module with another name has a TARGET.
    Modules without a TARGET and such a name are not imported, because that takes long.
    """
    found = {}
    for paper in PAPERS:
        package = importlib.import_module(f"{__package__}.{paper}")
        for item in (one.name for one in pkgutil.iter_modules(package.__path__)):
            path = Path(package.__path__[0], f"{item}.py")
            has_one = path.is_file() and re.search(r"^TARGET\b", path.read_text(encoding="utf-8"), re.MULTILINE)
            if has_one and not (_ITEM_OF_NO_PAPER if paper in NO_PAPER else _ITEM).fullmatch(item):
                allowed = "tableN or figureN (with _sensitivity for a study) or running_time"
                if paper in NO_PAPER:
                    allowed = "by lower-case letters, digits and _, and begin with a letter"
                raise ValueError(f"{path} has a TARGET, but targets of {PAPERS[paper]} are named {allowed}; rename it")
            if not has_one and not _ITEM.fullmatch(item):
                continue
            module = importlib.import_module(f"{package.__name__}.{item}")
            if not isinstance(getattr(module, "TARGET", None), Target):
                raise ValueError(f"{module.__name__} has no TARGET")
            found[f"{paper}_{item}"] = _with_departures(replace(module.TARGET, name=f"{paper}_{item}"))
    return found


def _with_departures(target: Target) -> Target:
    """Add the number of departures from the paper to the notes of a table or the caption of a figure."""
    said = departures(target.name)
    if not said:
        return target
    if target.is_table:
        return replace(target, notes=(*target.notes, said))
    caption = target.caption
    return replace(target, caption=lambda options: f"{caption(options)}\n\n{said}")


def make(
    name: str, files: Files, options: Options, sources: Mapping[str, Mapping[str, Any]], stem: str | os.PathLike[str]
) -> None:
    """Build a target and write its files (``stem``.csv and so on, ``stem``_claims.csv), each by an atomic replacement.

    files : input files by name, with "of_claims" for the folders of :meth:`Target.corpora`
    sources : result of :meth:`Target.sources`. A claim on another dataset raises ValueError.
    """
    import numpy as np

    from mc2core.base import storage
    from mc2core.corpus import Corpus
    from mc2papers.datasets.origins import ORIGINS, data_of
    from mc2papers.report.claims import on_data, write_claims
    from mc2papers.report.extent import said

    target, stem = registry()[name], Path(stem)
    own = dict(files)
    folders = own.pop("of_claims", ())
    built = target.build(own, options)
    data, documents, per_class = {}, {}, {}
    for folder in map(Path, folders):
        documents[folder.name] = storage.read_json(folder / "source.json")["documents"]
        labels = Corpus.load(folder / "train").labels if target.by_classes else None
        if labels is not None:
            per_class[folder.name] = labels.shape[0] / len(np.unique(np.asarray(labels)))
    for dataset, corpus in sources.items():
        size, limits = said(corpus.get("extent", {}), documents.get(dataset))
        of, known = per_class.get(dataset, math.inf), data_of(dataset, corpus)
        data[ORIGINS[dataset].title] = replace(known, size=size, limits=limits, per_class=of)
    claims = on_data(built.claims, data)
    if target.is_table and built.figure is not None:
        raise ValueError(f"{name} is a table, but its module returned a figure; set is_study=True to show both")
    if target.is_table or target.is_study:
        from mc2papers.report.tables import write_table

        shown = built.data if built.shown is None else built.shown
        notes = [f"Conclusion: {built.conclusion}", *target.notes] if built.conclusion else target.notes
        write_table(stem, built.data, shown, target.title, notes, claims)
    if not target.is_table:
        from mc2papers.report.style import write_figure

        if built.figure is None:
            raise ValueError(f"{name} is a figure, but its module returned no figure")
        write_figure(built.figure, built.data, stem)
    if target.has_claims:
        write_claims(stem.with_name(f"{stem.name}_claims.csv"), name, claims)
