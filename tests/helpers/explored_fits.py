"""A small corpus with everything that a page can show, and models of it."""

import json
import re

import numpy as np
import pandas as pd
import scipy.sparse as sp
from helpers import fits

import mc2core
from mc2core import Corpus
from mc2core.families import DirichletCategorical, NormalGamma
from mc2core.inference.running.loop import fit

#: what must stay text wherever it is shown
HOSTILE = "<script>document.title = 'broken'</script><img src=x onerror=\"document.title='broken'\">"


def corpus(n_documents=60):
    """Three groups of documents, each with words, an author and years of its own."""
    rng = np.random.default_rng(8)
    group = np.arange(n_documents) % 3
    near = np.full((3, 18), 0.02)
    for g in range(3):
        near[g, 6 * g : 6 * g + 6] = 1.0
    near /= near.sum(axis=1, keepdims=True)
    content = np.array([rng.multinomial(25, near[g]) for g in group])
    years = 1990.0 + 4 * group + rng.integers(0, 3, n_documents)
    years[5] = np.nan
    authors = np.zeros((n_documents, 7), np.int64)
    authors[np.arange(n_documents), 2 * group + rng.integers(0, 2, n_documents)] = 1
    authors[:4, 6] = 1
    authors[7] = 0
    titles = [f"On {['lakes', 'woods', 'stars'][g]}, part {j}" for j, g in enumerate(group)]
    titles[2] = HOSTILE
    return Corpus(
        content,
        [f"{['lake', 'wood', 'star'][w // 6]}{w % 6}" for w in range(18)],
        {"year": years, "author": sp.csr_matrix(authors)},
        labels=group,
        documents=pd.DataFrame({"title": titles, "place": ["<b>here</b>"] * n_documents}),
        context_names={"author": ["Lund", "Okafor", "Reyes", "Adeyemi", "Baker", "<i>Chen</i>", "Zola & Sons"]},
        label_names=["water", "land", "sky"],
    ).standardised("year")


def of_contexts_alone():
    """Two clusters of documents without a word, and their fit: there are no topics."""
    x = np.where(np.arange(40) % 2, 5.0, -5.0) + np.random.default_rng(0).standard_normal(40)
    documents = Corpus(np.zeros((40, 1), int), contexts={"x": x}, units={"x": (0.0, 1.0)})
    engine = fits.gibbs(contexts={"x": NormalGamma()}, start_clusters=6)
    return mc2core.fit(documents, *engine, iterations=8, seed=1, chains=1)


def gibbs(documents, **settings):
    """MC2 with both contexts, started from more clusters than there are, so that some can be merged."""
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = fits.gibbs(contexts=contexts, start_topics=5, start_clusters=6, **settings)
    return fit(documents, *engine, iterations=3, seed=1, burn_in=2).posterior


def fastex(documents):
    """Clusters that are topics; no contexts."""
    return fit(
        documents.with_contexts({}), *fits.fastex(n_clusters=6, proposal="exact"), iterations=2, seed=1
    ).posterior


def svi(documents):
    """MC2 by SVI with both contexts, with a document level."""
    contexts = {"year": NormalGamma(), "author": DirichletCategorical(0.1)}
    engine = fits.svi(contexts=contexts, max_clusters=6, batch_size=None, document_concentration=2.0)
    return fit(documents, *engine, iterations=2, seed=1).posterior


def data_of(page, name="DESCRIPTION"):
    """The data that an HTML report gives to its scripts under a name."""
    text = re.search(rf"<script>window\.{name} = JSON\.parse\('(.*?)'\);</script>", page, re.S)[1]
    return json.loads(re.sub(r"\\(['\\])", r"\1", text))
