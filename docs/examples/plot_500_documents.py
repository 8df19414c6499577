"""
Explore 500 documents with dates and authors
============================================

500 short texts on eight crafts, each with a title, a year and its authors. They are
simulated (``tools/example_texts.py``); read a table of your own in the same way. The
file is :download:`crafts.csv </examples/crafts.csv>`.
"""

import matplotlib.pyplot as plt
import pandas as pd

import mc2core
from mc2core import plots
from mc2core.models import MC2

frame = pd.read_csv("crafts.csv")
frame.head(3)

# %%
# The corpus holds the counts of the words, the years as a number and the authors as a
# bag of names. Words of a single document are left out.

corpus = mc2core.Corpus.from_dataframe(
    frame,
    text="text",
    contexts={"year": "year", "author": "authors"},
    separator=";",
    min_df=2,
)
print(corpus)

# %%
# A fit runs two chains and infers the numbers of clusters and topics. An ARI of 1 means
# that both chains found the same clusters.

model = MC2(contexts=["year", "author"])
fit = mc2core.fit(corpus, model, iterations=40, seed=0)
posterior = fit.posterior
print(posterior.between_chains())

# %%
# The table shows the name of each cluster, its number of documents, their mean
# certainty, the likeliest authors and the mean year.

clusters = fit.clusters()
columns = ["name", "documents", "certainty", "context_author", "context_year_mean"]
clusters[columns].round(2)

# %%
# Read the least certain documents first. In one text of five, the last sentence is
# about another craft.

documents = fit.documents()
documents["title"] = frame["title"].to_numpy()
columns = ["title", "cluster_name", "probability"]
documents.sort_values("probability")[columns].head(5)

# %%
# The first plot shows the share of each author's documents in each cluster. The second
# shows the shares of the two commonest topics by year, with 90 % intervals.

figure, axes = plt.subplots(2, 1, figsize=(8, 9))
plots.clusters_by_context(fit, "author", ax=axes[0])
plots.topics_over_time(fit, "year", fit.topics()["topic"].head(2), ax=axes[1])
figure.tight_layout()

# %%
# Predict the cluster of a new text from its words alone.

new = mc2core.Corpus.from_texts(
    ["A storm closes the harbour, and the ferry waits for the wind"],
    contexts={"year": [None], "author": [[]]},
    like=posterior,
)
cluster, probability = posterior.assign(new, cut="recommended")
print(f"{clusters['name'][cluster[0]]}, probability {probability.max():.2f}")
