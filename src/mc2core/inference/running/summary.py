"""Summary of a run: numbers of clusters and topics, their change at the end, and the agreement of chains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mc2core.posterior import Posterior, consensus

#: names of the trace that are followed
_NAMES = ("clusters", "topics")


def found(
    posterior: Posterior,
    traces: Sequence[Sequence[Mapping[str, float]]],
    names: Sequence[str] = _NAMES,
    truncations: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Return the numbers of clusters and topics in use, and their course over the last third of each chain.

    Convergence cannot be determined from a single trace, so it is not reported.

    Parameters
    ----------
    posterior : result of the run.
    traces : rows of each chain, one per iteration.
    names : which of "clusters" and "topics" the engine infers; others are left out.
    truncations : largest possible numbers, if the results depend on them.

    Returns
    -------
    dict
        ``clusters``, ``topics``: int, :meth:`Posterior.number` of each. ``intervals``: dict, central 90 % interval over
        samples of the numbers of main clusters (:meth:`Posterior.interval`) and of topics; empty if there is one
        sample. ``over``: int, a third of the iterations. ``before``,
        ``after``: dict, each number ``over`` iterations before the end and at the end, per chain; empty if ``over`` is
        0. ``chains``: :meth:`Posterior.between_chains`. ``truncations``: dict of int, if there are any. A run adds
        ``warnings`` (:func:`mc2core.inference.running.advice.advice`) and, if it has a hierarchy, ``recommended``, the
        number of clusters.
    """
    over = min(len(trace) for trace in traces) // 3
    about: dict[str, Any] = {"over": over, "before": {}, "after": {}, "intervals": {}}
    for name in names:
        if all(trace and name in trace[-1] for trace in traces):
            about[name] = posterior.number(name)
            if over:
                about["before"][name] = [int(trace[-1 - over][name]) for trace in traces]
                about["after"][name] = [int(trace[-1][name]) for trace in traces]
            if len(posterior.samples) > 1:
                of = consensus.COUNTED[name]
                about["intervals"][of] = list(posterior.interval(of))
    about["chains"] = posterior.between_chains()
    if truncations:
        about["truncations"] = dict(truncations)
    return about


def sentence(about: Mapping[str, Any]) -> str:
    """Return the result of :func:`found` as a sentence; "" if the engine reports neither number."""
    names = [name for name in _NAMES if name in about]
    if not names:
        return ""
    numbers = [f"{about[name]} {name}{_interval(name, about)}" for name in names]
    first = "found " + " and ".join(numbers) + _of_at_most([about], names)
    if about["chains"]:
        first = f"{first}; {agreement(about['chains'])}"
        return _with_changes(first, about, _changes([about], names)) + _meaning([about])
    first = f"{first}; {ONE_CHAIN}" if "clusters" in names else first
    return _with_changes(first, about, _ends(about, names)) + _meaning([about])


def sentence_of_all(about: Sequence[Mapping[str, Any]]) -> str:
    """Return the results of :func:`found` for the fits of a run, one per seed, as a sentence; "" if there are none."""
    known = [one for one in about if any(name in one for name in _NAMES)]
    if len(known) < 2:
        return sentence(known[0]) if known else ""
    names = [name for name in _NAMES if name in known[0]]
    numbers = [f"{_range([one[name] for one in known])} {name}" for name in names]
    first = f"found {' and '.join(numbers)} in {len(known)} fits{_of_at_most(known, names)}"
    return _with_changes(first, known[0], _changes(known, names)) + _meaning(known)


ONE_CHAIN = "one chain; another start may differ"
#: what it means where all documents are in one cluster
ONE_CLUSTER = (
    "one cluster: topics alone account for how documents differ, no grouping of documents does so better "
    "(docs/how_to/choosing_k.md)"
)


def is_one_cluster(about: Mapping[str, Any]) -> bool:
    """Return whether a fit with topics found only one cluster of documents."""
    return about.get("clusters") == 1 and "topics" in about


def _meaning(known: Sequence[Mapping[str, Any]]) -> str:
    return f"; {ONE_CLUSTER}" if any(map(is_one_cluster, known)) else ""


def agreement(chains: Mapping[str, Any]) -> str:
    """Return the agreement as a phrase: "3 chains of 31, 33 and 36 clusters agree by ARI 0.71"."""
    name = next(name for name in _NAMES if name in chains)
    *numbers, last = map(str, chains[name])
    said = f"{len(chains[name])} chains of {', '.join(numbers)} and {last} {name}"
    if "ari" not in chains:
        return said
    return f"{said} agree by ARI {chains['ari']:.2f}, VI {chains['vi_bits']:.2f} bits"


def _interval(name: str, about: Mapping[str, Any]) -> str:
    """Of 90 % of the samples; a number of topics outside is said to be that of the sample that is shown."""
    bounds = about["intervals"].get(consensus.COUNTED[name])
    if bounds is None:
        return ""
    is_outside = name == "topics" and not bounds[0] <= about[name] <= bounds[1]
    return f"{' in the sample shown' if is_outside else ''} ({consensus.in_samples(name, bounds)})"


def _ends(about: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """From what to what each number of the only chain went."""
    ends = [(name, about["before"][name][0], about["after"][name][0]) for name in names if name in about["before"]]
    return [
        f"{name} were {after} at both ends" if before == after else f"{name} went from {before} to {after}"
        for name, before, after in ends
    ]


def _changes(known: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[str]:
    """By how much each number changed in the chains of some fits."""
    told = []
    for name in names:
        if all(name in one["before"] for one in known):
            ends = [pair for one in known for pair in zip(one["before"][name], one["after"][name], strict=True)]
            told.append(f"{name} changed by {_range([after - before for before, after in ends], '+')}")
    return told


def _of_at_most(known: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """The truncations, for engines whose numbers follow them."""
    if not all("truncations" in one for one in known):
        return ""
    following = [name for name in names if name in known[0]["truncations"]]
    most = " and ".join(f"{_range([one['truncations'][name] for one in known])} {name}" for name in following)
    return f", of at most {most}: the truncation, which {' and '.join(following)} follow (docs/how_to/choosing_k.md)"


def _with_changes(first: str, about: Mapping[str, Any], told: Sequence[str]) -> str:
    """``first``, with what is told of the numbers and the iterations over which it is so; alone without these."""
    over = "iteration" if about["over"] == 1 else f"{about['over']} iterations"
    return f"{first}; over the last {over} {', '.join(told)}" if told else first


def _range(values: Sequence[int], sign: str = "") -> str:
    """ "12 to 15", or "12" if they are all the same; with a ``sign`` "+" as "0 to +3"."""
    least, most = (f"{value:{sign if value else ''}d}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"
