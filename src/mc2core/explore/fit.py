"""The results of a fit as DataFrames: topics, clusters, documents and contexts, with names."""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ParamSpec

from mc2core.base.pages import facts
from mc2core.base.progress import showing
from mc2core.inference.running import loop
from mc2core.inference.running.summary import add_hierarchy, sentence

if TYPE_CHECKING:
    import pandas as pd

    from mc2core.explore.describe import Report
    from mc2core.explore.description import Description
    from mc2core.explore.rerun import Rerun
    from mc2core.explore.words import Names

logger = logging.getLogger(__name__)

_Parameters = ParamSpec("_Parameters")
_SHOWN = 10  # number of clusters and topics that a notebook shows
_SHARES = ("documents", "count", "share", "low", "high", "is_notable")


@dataclass(repr=False)
class Fit(loop.RunResult):
    """Result of :func:`fit`: the posterior and the documents, with tables as DataFrames.

    ``Fit(posterior, corpus)`` gives the same tables for a loaded posterior. ``corpus`` may contain the fitted documents
    or other documents. :mod:`mc2core.plots` draws plots of a fit.

    Tables use the recommended clustering unless a ``cut`` is given. Clusters are numbered from 1 in order of decreasing
    size. ``mc2 describe`` and the HTML report use the same cluster numbers and columns. Most tables are computed once,
    on first use.

    Attributes
    ----------
    posterior, corpus, state, trace, provenance, snapshots
        As in :class:`mc2core.inference.running.loop.RunResult`. For a loaded posterior, state and trace are None.
    """

    names: Names = field(default_factory=dict)
    threads: int = 1

    @cached_property
    def description(self) -> Description:
        """Internal description of the fit, from which all tables and plots are computed."""
        from mc2core.explore.description import Description

        return Description.from_posterior(self.posterior, self.corpus, self.threads, self.names)

    def rename(self, names: Names | str | os.PathLike[str]) -> None:
        """Set the names that tables, plots and reports show for clusters and topics.

        Parameters
        ----------
        names : mapping or path
            Names by number, for example ``{"cluster": {1: "Trade"}, "topic": {3: "Oil"}}``, or the file ``names.csv``
            of a report. If the file belongs to another fit, its names are given to the clusters and topics with the
            most similar words. Other clusters and topics keep their names.

        Raises
        ------
        ValueError
            If a cluster or topic does not exist, or if ``names`` does not have the form of the example.
        """
        from mc2core.explore.names import with_names
        from mc2core.explore.words import read_names

        if not isinstance(names, Mapping):
            names = with_names(self.description, read_names(names)).names
        if not all(isinstance(part, Mapping) for part in names.values()):
            raise ValueError(f'names are by kind and number, such as {{"cluster": {{1: "Trade"}}}}, got {names!r}')
        all_names: dict[str, Mapping[int, str]] = {**self.names}
        all_names |= {kind: {**all_names.get(kind, {}), **part} for kind, part in names.items()}
        self.names, self.description = all_names, self.description.named(all_names)
        for name in ("_of_clusters", "_of_topics"):
            self.__dict__.pop(name, None)

    def merge_clusters(self, clusters: Sequence[int]) -> None:
        """Merge recommended clusters by hand; tables, plots, predictions and reports then use the merged clusters.

        Clusters are renumbered in order of decreasing size. Names set by :meth:`rename` are kept, and move to the
        clusters with the most similar words. :meth:`methods` mentions the merge, and ``posterior.save`` saves it. The
        samples and other cuts do not change.

        Parameters
        ----------
        clusters : sequence of int
            Numbers of two or more recommended clusters, from 1.

        Raises
        ------
        ValueError
            If the numbers are invalid, if there is no hierarchy, or if documents were added by an update.
        """
        import pandas as pd

        from mc2core.explore import clusters as of_clusters
        from mc2core.explore import topics as of_topics
        from mc2core.explore.merging import merge_clusters
        from mc2core.explore.names import with_names

        tables = [of_clusters.names(self.description), of_topics.names(self.description)] if self.names else []
        self.posterior, self.names = merge_clusters(self.posterior, clusters), {}
        for name in ("description", "_of_clusters", "_of_topics", "_shares"):
            self.__dict__.pop(name, None)
        if tables:
            self.rename(with_names(self.description, pd.concat(tables)).names)

    def topics(self) -> pd.DataFrame:
        """Return a table with one row per topic of the representative sample, the most frequent first.

        The index is the number of the topic, from 1. The columns are:

        - topic and name; tokens (expected number in the documents), share (of the fitted tokens), and clusters (number
          of clusters that use the topic);
        - npmi (coherence of the words), npmi_by_chance and npmi_by_chance_sd (mean and standard deviation of npmi if
          tokens are permuted among documents);
        - words (the likeliest) and distinctive_words (the most relevant);
        - found (share of the samples that contain the topic);
        - NAME_trend, for each context NAME of numbers or dates: the slope of the topic's share over the context, by
          regression over the documents. NAME_trend_low and NAME_trend_high are the ends of the interval of the slope.
          The topic has a trend if this interval excludes 0 (:class:`mc2core.explore.associations.Associations`).

        If topics emit observations, columns NAME_mean and NAME_sd replace words and npmi.
        """
        return _by_number(self._of_topics["topics"], "topic")

    def clusters(self, cut: int | str = "recommended") -> pd.DataFrame:
        """Return a table with one row per cluster that has documents. The index is the cluster number, from 1.

        Parameters
        ----------
        cut : int or str, optional
            Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.

        Returns
        -------
        DataFrame
            The columns are cluster, name, documents, share, weight, words and distinctive_words. If there are several
            samples, the columns certainty and found are added, and chains if there are several chains. Each context,
            kept column and label has a column with its commonest values in the cluster. Numeric variables have two
            columns instead, such as ``context_NAME_mean`` and ``context_NAME_sd``.
        """
        if self.description.without_clusters:
            raise ValueError("the model has no clusters of documents: each document has its own topics")
        size = self._size(cut)
        if size == self.description.recommended:
            return _by_number(self._of_clusters["clusters"].drop(columns="joins"), "cluster")
        table = self._of_clusters["cut_clusters"]
        rows = table[table["cut"] == size].assign(cluster=table["number"])
        return _by_number(rows.drop(columns=["cut", "number", "joins"]), "cluster")

    def documents(self, cut: int | str = "recommended") -> pd.DataFrame:
        """Return a table with one row per document: cluster, probability of the cluster, title, label and contexts.

        Parameters
        ----------
        cut : int or str, optional
            Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit. The
            column ``probability`` does not depend on ``cut``: it always refers to the recommended clustering.
        """
        from mc2core.explore.documents import document_tables

        table, size = document_tables(self.description, with_map=False)["documents"], self._size(cut)
        node = self.description.at(size) + self.description.first[size] + 1
        table["cluster"] = self.description.at(size) + 1
        position = list(table.columns).index("cluster") + 1
        table.insert(position, "cluster_name", [self._names["cluster"].get(one) for one in node])
        return table

    def document_topics(self) -> pd.DataFrame:
        """Return a table with one row per document and topic; the most frequent topic of a document comes first.

        The columns are document, topic, name, tokens and share. Topics with less than 1 % of a document's tokens are
        left out. For FastEx, where each cluster is a topic, the table is empty.
        """
        from mc2core.explore.documents import document_topics

        table = document_topics(self.description)
        table.insert(2, "name", table["topic"].map(self._names["topic"]))
        return table

    def contexts(self, name: str | None = None, cut: int | str = "recommended") -> pd.DataFrame:
        """Return the share of each cluster and topic for each value of each context, kept column and label.

        Numbers and dates are grouped into bins.

        Parameters
        ----------
        name : str, optional
            Name of one context, kept column or label. By default, all are used.
        cut : int or str, optional
            Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.

        Returns
        -------
        DataFrame
            The columns are ``of`` ("cluster" or "topic"), number, name, context, value (or start and end of a bin),
            documents, count, share, low, high and is_notable. ``low`` and ``high`` are the ends of the 90 % interval of
            the share (:func:`mc2core.explore.shares.shares_by_value`). ``is_notable`` marks shares that differ from the
            average by more than chance explains.
        """
        import pandas as pd

        kinds = [table for table in self._shares.values() if len(table)]
        available = sorted({one for table in kinds for one in table["context"]})
        if name is not None:
            _check_context(name, available)
            kinds = [table[table["context"] == name] for table in kinds if (table["context"] == name).any()]
        if not kinds:
            return pd.DataFrame(columns=["of", "number", "name", "context", *_SHARES])
        table = self._add_names(pd.concat(kinds, ignore_index=True), cut)
        order = ["of", "number", "name", "context", "value", "start", "end", "period"]
        if "period" in table and table["period"].isna().all():  # the period belongs to another context
            order.remove("period")
        return table[[*(one for one in order if one in table), *_SHARES]]

    def effects(self, contexts: str | Sequence[str], cut: int | str = "recommended") -> pd.DataFrame:
        """Estimate the effect of each context on the shares of clusters and topics, given the other contexts.

        The effects are the coefficients of one linear regression over the documents on all given contexts.

        Parameters
        ----------
        contexts : str or list of str
            Names of contexts, kept columns or labels.
        cut : int or str, optional
            Number of clusters, "recommended" (the default), "broad", "fine", or "all" for the clusters of the fit.

        Returns
        -------
        DataFrame
            The columns are ``of`` ("cluster" or "topic"), number, name, context, value, reference, documents, effect,
            low and high. For groups, ``effect`` is the share at ``value`` minus the share at ``reference``, the
            commonest value. For numbers, ``effect`` is the change of the share per unit, such as per year. ``low`` and
            ``high`` are the ends of the 90 % interval of the effect.

        Raises
        ------
        ValueError
            If a context does not exist, if it has several values in a document, or if it is determined by the other
            contexts.
        """
        from mc2core.explore.shares import effects
        from mc2core.explore.variables import variables_of

        by_name = {one.name: one for one in variables_of(self.description)}
        contexts = [contexts] if isinstance(contexts, str) else contexts
        for name in contexts:
            _check_context(name, by_name)
        return self._add_names(effects(self.description, [by_name[name] for name in contexts]), cut)

    def report(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        texts: str | os.PathLike[str] | Sequence[str] | None = None,
        phrases: bool = False,
        seed: int = 0,
    ) -> Report:
        """Return the HTML report, which notebooks display. If ``folder`` is given, also write the report and its
        tables.

        The report shows the names set by :meth:`rename`. The errors are those of
        :func:`mc2core.explore.describe.report`.

        Parameters
        ----------
        folder : path, optional
            Folder for the report and its tables.
        title : str, optional
            Heading of the report.
        texts : path, str or sequence of str, optional
            Texts of the documents: a list, the name of a kept column, or the imported file.
        phrases : bool, optional
            Whether names of clusters and topics may contain frequent phrases of two words; this needs ``texts``.
        seed : int, optional
            Seed of the map of documents.
        """
        from mc2core.explore.describe import DEFAULT_TITLE, report

        settings = (title or DEFAULT_TITLE, seed, self.threads, self.names, texts, phrases)
        result = report(self.posterior, self.corpus, *settings, in_one_file=folder is None)
        if folder is not None:
            result.save(folder)
        return result

    def methods(self) -> str:
        """Return a paragraph for the methods section of a paper: model, engine, data, settings and versions.

        Raises ValueError if the settings of the fit are not in the provenance of the posterior.
        """
        from mc2core.explore.methods import paragraph

        provenance = self.posterior.provenance | self.provenance
        return paragraph(self.posterior, self.corpus, provenance, self.description.recommended)

    def rerun(self) -> Rerun:
        """Run the fit again with its stored settings and seed, and compare the results bit by bit.

        ``print(fit.rerun())`` reports whether the results are the same (:func:`mc2core.explore.rerun.rerun`).
        """
        from mc2core.explore.rerun import rerun

        return rerun(self.posterior, self.corpus, self.threads)

    def to_arviz(self, burn_in: int | None = None) -> Any:
        """Return the trace as ``InferenceData`` of ArviZ (:func:`mc2core.explore.traces.to_arviz`).

        Raises ValueError if there is no trace, as for a loaded posterior. For a trace that was read from a file, use
        ``Fit(posterior, corpus, trace=frame)``.
        """
        from mc2core.explore.traces import to_arviz

        if self.trace is None:
            raise ValueError("a loaded posterior has no trace; read trace.tsv next to it")
        return to_arviz(self.trace, burn_in)

    def _add_names(self, table: pd.DataFrame, cut: int | str) -> pd.DataFrame:
        """Return the rows of ``table`` for topics and for clusters of ``cut``, with a column of names."""
        size = self._size(cut)
        first = self.description.first[size]
        is_shown = (table["of"] == "topic") | table["number"].isin(self.clusters(size)["cluster"] + first)
        table, names = table[is_shown].reset_index(drop=True), self._names
        called = [names[kind].get(number) for kind, number in zip(table["of"], table["number"], strict=True)]
        table.insert(2, "name", called)
        table["number"] -= first * (table["of"] == "cluster")
        return table

    def _size(self, cut: int | str) -> int:
        """Return the number of clusters of a cut. Raises ValueError if the cut is not described."""
        n_clusters: dict[int | str, int] = {one: one for one in self.description.first} | self.description.levels
        if cut not in n_clusters:
            names, sizes = ", ".join(self.description.levels), ", ".join(map(str, sorted(self.description.first)))
            raise ValueError(f"cut is {cut!r}; it must be {names} or a number that is described: {sizes}")
        return n_clusters[cut]

    @cached_property
    def _of_clusters(self) -> dict[str, pd.DataFrame]:
        from mc2core.explore.clusters import cluster_tables

        return cluster_tables(self.description)

    @cached_property
    def _of_topics(self) -> dict[str, pd.DataFrame]:
        from mc2core.explore.topics import topic_tables

        return topic_tables(self.description, with_map=False)

    @cached_property
    def _shares(self) -> dict[str, pd.DataFrame]:
        from mc2core.explore.shares import shares_tables

        return shares_tables(self.description)

    @property
    def _names(self) -> dict[str, dict[int, str]]:
        """Names of clusters and topics by number."""
        clusters, topics = self._of_clusters, self._of_topics["topics"]
        of_clusters = {
            int(number): name
            for table in ("clusters", "cut_clusters")
            for number, name in clusters[table][["cluster", "name"]].itertuples(index=False)
        }
        return {"cluster": of_clusters, "topic": dict(zip(topics["topic"], topics["name"], strict=True))}

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: settings, the largest clusters and the commonest topics."""
        from mc2core.explore.topics import describe_topics

        provenance = self.provenance
        if "inferred" not in provenance:
            return facts("Fit", {"posterior": repr(self.posterior)}, "")
        rows: dict[str, Any] = {"inferred": sentence(provenance["inferred"]).removeprefix("found ")}
        rows |= {part: provenance[part]["name"] for part in ("model", "engine") if part in provenance}
        rows |= {name: provenance[name] for name in ("iterations", "seed") if name in provenance}
        rows["seconds"] = f"{provenance['seconds']:.3g}"
        shown = [describe_topics(self.posterior)]
        if not self.posterior.representative.documents_are_clusters:
            shown.insert(0, self._list_clusters())
        tables = [
            one.head(_SHOWN).to_html(index=False, border=0, formatters={"share": "{:.1%}".format}) for one in shown
        ]
        return facts("Fit", rows, "".join(tables))

    def _list_clusters(self) -> pd.DataFrame:
        """Return the recommended clusters with their names, the largest first."""
        import numpy as np
        import pandas as pd

        from mc2core.explore.clusters import names_of

        description, size = self.description, self.description.recommended
        documents = np.bincount(description.at(size), minlength=size)
        names = names_of(self.posterior, self.corpus, description.at(size), size)
        table = pd.DataFrame({"cluster": np.arange(size) + 1, "name": names, "documents": documents})
        user_names = self.names.get("cluster", {})
        table["name"] = [user_names.get(number, name) for number, name in zip(table["cluster"], names, strict=True)]
        table["share"] = documents / max(documents.sum(), 1)
        return table[documents > 0]


def _with_tables(run: Callable[_Parameters, loop.RunResult]) -> Callable[_Parameters, Fit]:
    def to_fit(result: loop.RunResult) -> Fit:
        return Fit(**vars(result), threads=result.provenance.get("threads", 1))

    @functools.wraps(run)
    def fit(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Fit:
        kwargs.setdefault("chains", None)
        on_stop: Any = kwargs.get("on_stop")
        if on_stop is not None:
            kwargs["on_stop"] = lambda stopped: on_stop(to_fit(stopped))
        result = to_fit(run(*args, **kwargs))
        with showing(kwargs.get("progress")):  # type: ignore[arg-type]
            add_hierarchy(result.posterior, result.corpus, result.provenance["inferred"])
        for warning in result.provenance["inferred"]["warnings"]:
            logger.warning(warning)
        return result

    signature = inspect.signature(run)
    parameters = [one.replace(default=None) if name == "chains" else one for name, one in signature.parameters.items()]
    fit.__signature__ = signature.replace(parameters=parameters, return_annotation="Fit")  # type: ignore[attr-defined]
    return fit


fit = _with_tables(loop.fit)


def _check_context(name: str, known: Collection[str]) -> None:
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ValueError(f"there is no context {name!r} of numbers, dates or names; known: {listed}")


def _by_number(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return a copy of ``table`` whose index is the column ``column``, so that a printed table shows no other index."""
    return table.set_axis(table[column].to_numpy())
