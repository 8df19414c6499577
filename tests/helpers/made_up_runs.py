"""Runs that were made up by their traces, for what is said of them."""

from types import SimpleNamespace

from mc2core.inference.running.summary import found


def trace(clusters, topics):
    return [{"clusters": one, "topics": other} for one, other in zip(clusters, topics, strict=True)]


def found_by(*traces, intervals=None, chains=None, n_clusters=None, **arguments):
    """What a run with these traces of its chains found: its posterior has the last numbers of the first.

    ``intervals``: bounds of each number, of several samples; ``chains``: how far chains agree;
    ``n_clusters``: of the model.
    """
    last = traces[0][-1] if traces[0] else {}
    posterior = SimpleNamespace(
        number=lambda name: int(last[name]),
        samples=[None, None] if intervals else [None],
        interval=lambda name: intervals[name],
        between_chains=lambda: chains or {},
        provenance={"model": {"n_clusters": n_clusters}},
    )
    return found(posterior, traces, **arguments)
