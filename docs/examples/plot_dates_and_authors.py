"""
A newspaper: texts with dates and authors
=========================================

Notes of a made-up local paper over thirty years, each with its year and authors: four
columns, one of which was begun in 2005. The example draws them itself; a table of your
own comes in by ``pandas.read_csv`` in the same way.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import mc2core
from mc2core import plots
from mc2core.inference import Gibbs
from mc2core.models import MC2

WORDS = {
    "harbour": "ferry harbour sailor rope storm lake sail ice tide captain net boat",
    "council": "council vote mayor budget tax road school meeting motion permit debt",
    "kitchen": "bread oven butter soup onion salt flour spoon recipe pepper dough",
    "computers": "screen keyboard software network password code update server cable",
}
AUTHORS = {
    "harbour": ["Lund", "Okafor"],
    "council": ["Reyes", "Okafor"],
    "kitchen": ["Marsh", "Ito"],
    "computers": ["Ito", "Varga"],
}
rng = np.random.default_rng(1)
rows = []
for _ in range(240):
    year = rng.integers(1990, 2020)
    column = rng.choice(list(WORDS)[: 4 if year >= 2005 else 3])
    own, others = WORDS[column].split(), " ".join(WORDS.values()).split()
    words = np.where(rng.random(40) < 0.75, rng.choice(own, 40), rng.choice(others, 40))
    authors = rng.choice(AUTHORS[column], rng.integers(1, 3), replace=False)
    rows.append(
        {
            "text": " ".join(words),
            "year": year,
            "authors": "; ".join(authors),
            "column": column,
        }
    )
frame = pd.DataFrame(rows)
frame.head(3)

# %%
# A corpus: words are counted, ``year`` is a number and ``author`` a bag of names. The
# column of the paper is a label, to compare with afterwards; no fit looks at it.

corpus = mc2core.Corpus.from_dataframe(
    frame,
    text="text",
    contexts={"year": "year", "author": "authors"},
    separator=";",
    labels="column",
)
print(corpus)

# %%
# Two chains, with both contexts. How many clusters there are is found.

fit = mc2core.fit(
    corpus,
    MC2(contexts=["year", "author"]),
    Gibbs(threads=2),
    iterations=40,
    chains=2,
    seed=0,
)
posterior = fit.posterior
print(posterior.between_chains())

# %%
# What the clusters are: their documents, how sure these are of them, the words that set
# a cluster apart, and what is known of its documents beside words.

clusters = fit.clusters()
columns = ["name", "documents", "certainty", "context_author", "context_year_mean"]
clusters[columns].round(2)

# %%
# The same beside the columns of the paper.

frame["cluster"] = fit.documents()["cluster"].to_numpy()
print(pd.crosstab(frame["cluster"], frame["column"]))

# %%
# Who wrote what, and when the two commonest topics came up, by one function each.

figure, axes = plt.subplots(2, 1, figsize=(8, 8))
plots.clusters_by_context(fit, "author", ax=axes[0])
plots.topics_over_time(fit, "year", fit.topics()["topic"].head(2), ax=axes[1])
figure.tight_layout()

# %%
# A new note, by an author whom the model knows: what it does not know is left out and
# counted.

new = mc2core.Corpus.from_texts(
    ["The storm tore the sail of the ferry"],
    contexts={"year": [2018], "author": [["Lund"]]},
    like=posterior,
)
likely = posterior.predict(new)[0]
print("a note of the column", frame["column"][posterior.cluster == likely].mode()[0])
