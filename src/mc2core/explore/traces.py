"""Convert the trace of a fit for the diagnostics of ArviZ."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import pandas as pd

from mc2core.base.extras import MissingPackage


def to_arviz(trace: pd.DataFrame, burn_in: int | None = None) -> Any:
    """Return the columns of a trace (log joint, clusters, topics, ...) as ``InferenceData`` of ArviZ.

    The group ``posterior`` has one chain per chain of the fit, and one draw per iteration after the burn-in. With
    ArviZ 1.0 or later, the result is a ``DataTree``.

    Parameters
    ----------
    trace : DataFrame
        ``Fit.trace``, or ``pandas.read_csv("FIT/trace.tsv", sep="\\t")``.
    burn_in : int, optional
        Number of iterations to discard. By default, half of the iterations are discarded.

    Raises
    ------
    MissingPackage
        If ArviZ is not installed.
    ValueError
        If no iteration is left after the burn-in.
    """
    if importlib.util.find_spec("arviz") is None:
        raise MissingPackage("a trace for ArviZ needs the package arviz, which is not installed: pip install arviz")
    arviz = importlib.import_module("arviz")
    last = int(trace.groupby("chain")["iteration"].max().min())
    burn_in = last // 2 if burn_in is None else burn_in
    draws = trace[trace["iteration"].between(burn_in + 1, last)]
    if draws.empty:
        raise ValueError(f"a burn-in of {burn_in} leaves none of {last} iterations")
    values = {
        str(name): np.stack([part.to_numpy(float) for _, part in draws.groupby("chain")[name]])
        for name in trace.columns
        if name not in ("chain", "iteration", "seconds", "tokens")
    }
    if hasattr(arviz, "InferenceData"):
        return arviz.from_dict(posterior=values)
    return arviz.from_dict({"posterior": values})
