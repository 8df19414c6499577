"""
Pictures: visual words, tags and a number
=========================================

A document can be a picture. Its words are image patches ("visual words"), and its
contexts are tags and brightness. Half of the pictures have no tags. All pictures are
simulated.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import mc2core
from mc2core.clustering import adjusted_rand_index
from mc2core.inference import Gibbs
from mc2core.models import MC2

SCENES = ("beach", "city at night", "forest", "snow")
TAGS = (
    "sea",
    "sand",
    "lights",
    "street",
    "tree",
    "green",
    "ski",
    "white",
    "holiday",
    "friends",
)
rng = np.random.default_rng(0)
J, V = 240, 60
scene = rng.integers(0, 4, J)
patches = rng.dirichlet(np.full(V, 0.1), 8)  # distributions of eight textures
textures = rng.dirichlet(np.full(8, 0.5), 4)  # proportions of textures in four scenes
counts = np.array([rng.multinomial(30, textures[one] @ patches) for one in scene])
tag_shares = np.full((4, len(TAGS)), 0.05)
for number in range(4):
    tag_shares[number, 2 * number : 2 * number + 2] = 0.3
tag_shares[:, 8:] = 0.15
tags = np.array(
    [rng.multinomial(3, tag_shares[one] / tag_shares[one].sum()) for one in scene]
)
tags[rng.random(J) < 0.5] = 0  # missing
brightness = np.array([0.7, 0.2, 0.4, 0.9])[scene] + rng.normal(0, 0.1, J)

# %%
# A corpus has counts of words, and contexts. A numeric context is an array, in which
# ``nan`` marks missing values. A bag of tags is a row of a sparse matrix of counts. An
# empty row means that the tags are missing.

corpus = mc2core.Corpus(
    counts,
    [f"patch{number}" for number in range(V)],
    {"tags": sp.csr_matrix(tags), "brightness": brightness},
    labels=scene,
    context_names={"tags": TAGS},
    label_names=SCENES,
)
print(corpus)

# %%
# The plot compares fits with patches alone, with tags, with brightness, and with both
# contexts. A dot is one of five seeds. Brightness helps most, because it is known for
# every picture and separates the scenes. Tags hardly help: half of the pictures have no
# tags, and three noisy tags contain little information compared with thirty patches.
# The gain from tags is smaller than the difference between seeds, so several seeds are
# needed for a comparison.

agreement = {}
fits = {}
for contexts in ([], ["tags"], ["brightness"], ["tags", "brightness"]):
    name = " and ".join(contexts) or "patches alone"
    model = MC2(document_level=False, contexts=contexts)
    fits[name] = [
        mc2core.fit(
            corpus, model, Gibbs(kernel="interleaved"), iterations=40, seed=seed
        )
        for seed in range(5)
    ]
    agreement[name] = [
        adjusted_rand_index(one.posterior.cluster, corpus.labels) for one in fits[name]
    ]

figure, axis = plt.subplots(figsize=(6, 2.6))
axis.barh(
    list(agreement), [np.mean(one) for one in agreement.values()], color="#9ecae1"
)
for row, values in enumerate(agreement.values()):
    axis.plot(values, [row] * len(values), "o", color="#08519c", markersize=4)
    print(
        f"{list(agreement)[row]}: {np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}"
    )
axis.set(xlabel="agreement with the scenes (ARI)", xlim=(0, 1))
axis.set_title("Contexts and agreement: mean (bar) and five seeds (dots)")
axis.invert_yaxis()
figure.tight_layout()

# %%
# The text shows the mean brightness and the likeliest tags of each cluster, for the
# first fit with both contexts.

posterior = fits["tags and brightness"][0].posterior
for cluster in np.unique(posterior.cluster):
    inside = posterior.cluster == cluster
    likely = np.argsort(-posterior.context_mean("tags")[cluster])[:3]
    bright = posterior.context_mean("brightness")[cluster]
    print(
        f"{inside.sum():3} pictures, brightness {bright:.2f}:",
        ", ".join(TAGS[one] for one in likely),
    )
