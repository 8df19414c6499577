"""Read documents with one class and two or more views each, such as words and names, from MATLAB files.

The files movies, Cora, CiteSeer and ACM are from Zhang's collection of multi-view data sets. They have indices in place
of words, names and classes.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp

from mc2core.corpus import Corpus


def read(path: str | os.PathLike[str], context: str, words: int, names: int) -> Corpus:
    """Read a file with the cell array ``X`` of views and the classes ``y``.

    Parameters
    ----------
    context : name of the context
    words, names : indices in ``X`` of the views with words and with names. If names are the documents themselves, a
        document is not a name of itself.

    Raises
    ------
    ValueError
        If the file is missing, is not a MATLAB file, or has other variables or views.
    """
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path} is missing")
    try:
        content = loadmat(path, variable_names=["X", "y"])
        views, classes = [*content["X"].ravel()], content["y"].ravel()
        counts, bag = (sp.csr_matrix(views[place]).astype(np.int64) for place in (words, names))
    except (MatReadError, LookupError, TypeError, ValueError, NotImplementedError, OSError, zlib.error) as error:
        raise ValueError(f"{path} is not a MATLAB file with the views X and the classes y: {error}") from None
    if not counts.shape[0] == bag.shape[0] == len(classes):
        sizes = f"{counts.shape[0]}, {bag.shape[0]} and {len(classes)}"
        raise ValueError(f"{path} has words, names and classes of {sizes} documents; their numbers must be equal")
    if bag.shape[0] == bag.shape[1]:
        bag.setdiag(0)
        bag.eliminate_zeros()
    labels, names_of_classes = pd.factorize(classes, sort=True)
    return Corpus(
        counts,
        [f"w{word}" for word in range(counts.shape[1])],
        {context: bag},
        labels=labels,
        documents=pd.DataFrame({"id": [f"{path.stem.lower()}{row}" for row in range(len(labels))]}),
        context_names={context: [f"n{name}" for name in range(bag.shape[1])]},
        label_names=[f"c{one}" for one in names_of_classes],
    )
