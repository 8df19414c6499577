"""
Pictures as sets of descriptors
===============================

A descriptor is a vector of numbers that describes one point of a picture. Descriptors
are often converted to "visual words" before a fit. This is not necessary: a document
can be a set of descriptors, and topics are then Gaussian distributions. The example
simulates 150 pictures of four scenes. Each picture has 25 descriptors of eight numbers.
A descriptor belongs to one of ten textures, which occur in all scenes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

import mc2core
from mc2core.clustering import adjusted_rand_index
from mc2core.models import MC2

SCENES, TEXTURES, LENGTH = 4, 10, 25
rng = np.random.default_rng(1)
centres = 1.5 * rng.standard_normal((TEXTURES, 8))
scene = rng.integers(0, SCENES, 150)
shares = rng.dirichlet(np.full(TEXTURES, 0.3), SCENES)
own = np.array([rng.dirichlet(10 * shares[one] + 1e-3) for one in scene])
picture = np.repeat(np.arange(150), LENGTH)
texture = np.array([rng.choice(TEXTURES, p=own[j]) for j in picture])
descriptors = centres[texture] + rng.standard_normal((len(picture), 8))

names = [f"d{number}" for number in range(8)]
corpus = mc2core.Corpus.from_observations(
    descriptors, picture, labels=scene, names=names
)
new = np.arange(150) < 30
seen = corpus.subset(~new)
fit = mc2core.fit(seen, MC2(), iterations=40, seed=0)
print(fit.topics()[["name", "share", "clusters"]].round(3).to_string())

# %%
# The plot compares MC2 with two variants of k-means, by the agreement of their clusters
# with the scenes. K-means uses the true number of scenes. One variant clusters the mean
# descriptors of the pictures, the other their histograms of visual words. The text
# shows the agreement for new pictures, and the log density of their descriptors. Use
# this density to compare two fits of the same data.

means = descriptors.reshape(150, LENGTH, 8).mean(axis=1)[~new]
words = KMeans(30, n_init=1, random_state=0).fit_predict(descriptors)
histograms = np.zeros((150, 30))
np.add.at(histograms, (picture, words), 1 / LENGTH)
agreement = {
    "k-means of means": KMeans(SCENES, n_init=5, random_state=0).fit_predict(means),
    "k-means of visual words": KMeans(SCENES, n_init=5, random_state=0).fit_predict(
        histograms[~new]
    ),
    "MC2 of descriptors": fit.posterior.cluster,
}
agreement = {
    name: adjusted_rand_index(scene[~new], found) for name, found in agreement.items()
}
unseen = corpus.subset(new)
cluster, _ = fit.posterior.assign(unseen)
print(f"new pictures: ARI {adjusted_rand_index(scene[new], cluster):.2f}")
print(f"log density of a new descriptor: {fit.posterior.log_density(unseen):.2f}")

figure, axis = plt.subplots(figsize=(6, 1.9))
axis.barh(list(agreement), list(agreement.values()), color="#9ecae1")
axis.set(xlabel="agreement with the scenes (ARI)", xlim=(0, 1))
axis.set_title("Agreement of three methods with the scenes")
axis.invert_yaxis()
figure.tight_layout()

# %%
# The last plot shows the proportions of the topics in each cluster.

table = fit.posterior.topic_given_cluster
order = np.argsort(-table.sum(axis=0))[:15]
figure, axis = plt.subplots(figsize=(6, 2.6))
image = axis.imshow(table[:, order], cmap="Blues", aspect="auto")
axis.set_xticks(range(len(order)), [str(one + 1) for one in order])
axis.set_yticks(range(len(table)), [str(one + 1) for one in range(len(table))])
axis.set(xlabel="topic", ylabel="cluster", title="Topics of each cluster")
figure.colorbar(image, label="share of descriptors")
figure.tight_layout()
