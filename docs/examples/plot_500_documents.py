"""
Explore 500 documents with dates and authors
============================================

The file :download:`crafts.csv </examples/crafts.csv>` has 500 short texts on eight
crafts. Each text has a title, a year and authors. The texts are simulated
(``tools/example_texts.py``). You can read a table of your own in the same way.
"""

import matplotlib.pyplot as plt
import pandas as pd

import mc2core
from mc2core import plots
from mc2core.models import MC2

frame = pd.read_csv("crafts.csv")
frame.head(3)

# %%
# The corpus contains the counts of the words, the year of each text as a number, and
# its authors as a bag of names. Words that occur in only one document are dropped.

corpus = mc2core.Corpus.from_dataframe(
    frame,
    text="text",
    contexts={"year": "year", "author": "authors"},
    separator=";",
    min_df=2,
)
print(corpus)

# %%
# A fit runs two chains and infers the numbers of clusters and topics. The adjusted Rand
# index (ARI) measures the agreement of the chains. An ARI of 1 means that both chains
# found the same clusters.

model = MC2(contexts=["year", "author"])
fit = mc2core.fit(corpus, model, iterations=40, seed=0)
posterior = fit.posterior
print(posterior.between_chains())

# %%
# The table shows the name of each cluster, its number of documents, the mean certainty
# of their assignment, the likeliest authors and the mean year.

clusters = fit.clusters()
columns = ["name", "documents", "certainty", "context_author", "context_year_mean"]
clusters[columns].round(2)

# %%
# The table lists the documents with the least certain clusters. One cause is the
# simulation: in one of five texts, the last sentence is about another craft.

documents = fit.documents()
documents["title"] = frame["title"].to_numpy()
columns = ["title", "cluster_name", "probability"]
documents.sort_values("probability")[columns].head(5)

# %%
# The first plot shows how the documents of each author are distributed over the
# clusters. The second plot shows the shares of the two most frequent topics by year,
# with 90 % intervals.

figure, axes = plt.subplots(2, 1, figsize=(8, 9))
plots.clusters_by_context(fit, "author", ax=axes[0])
plots.topics_over_time(fit, "year", fit.topics()["topic"].head(2), ax=axes[1])
figure.tight_layout()

# %%
# The last lines predict the cluster of a new text from its words only. Its year and
# authors are missing.

new = mc2core.Corpus.from_texts(
    ["A storm closes the harbour, and the ferry waits for the wind"],
    contexts={"year": [None], "author": [[]]},
    like=posterior,
)
cluster, probability = posterior.assign(new, cut="recommended")
print(f"{clusters['name'][cluster[0]]}, probability {probability.max():.2f}")
