"""
Numbers with two levels: students in schools
============================================

A document can be a set of observations instead of words. In this example, a document is
a school, and each student is an observation with two scores. Topics are groups of
similar students, and clusters are groups of similar schools. The example simulates 120
schools of three types. The types have different proportions of the same four types of
students, but similar mean scores.
"""

import matplotlib.pyplot as plt
import numpy as np

import mc2core
from mc2core.clustering import adjusted_rand_index
from mc2core.models import MC2

rng = np.random.default_rng(1)
students = np.array([[35, 40], [50, 55], [55, 35], [70, 68]])
shares = np.array([[0.5, 0.1, 0, 0.4], [0.1, 0.6, 0.2, 0.1], [0.3, 0, 0.6, 0.1]])
kind = rng.integers(0, 3, 120)
school = np.repeat(np.arange(120), rng.integers(20, 41, 120))
student = np.array([rng.choice(4, p=shares[kind[j]]) for j in school])
scores = students[student] + 5 * rng.standard_normal((len(school), 2))

# %%
# Each row of ``scores`` is a student, and ``school`` has the index of the student's
# school. The number of pupils of a school is a context. On the command line,
# ``mc2 import students.csv --document school --observations maths,reading`` imports a
# table with one row per student.

pupils = np.array([300.0, 600.0, 500.0])[kind] + rng.normal(0, 150, 120)
corpus = mc2core.Corpus.from_observations(
    scores, school, {"pupils": pupils}, kind, names=["maths", "reading"]
)
fit = mc2core.fit(corpus, MC2(), iterations=40, seed=0)
topics = fit.topics()
print(topics[["name", "share", "maths_sd", "reading_sd"]].round(2).to_string())

# %%
# The name of a cluster consists of its distinctive topics. The table describes the
# clusters by the number of pupils, but the fit did not use this context. In four
# simulations with two seeds each, fits had three to six clusters, with an ARI of 0.70
# to 1. If two topics describe the same type of students, schools of one type may be
# divided among several clusters.

columns = ["name", "documents", "certainty", "context_pupils_mean", "context_pupils_sd"]
print(fit.clusters()[columns].round(2).to_string())
agreement = adjusted_rand_index(fit.posterior.cluster, kind)
means = np.array([scores[school == j].mean(axis=0) for j in range(120)])
print(f"agreement with the kinds of schools (ARI): {agreement:.2f}")

# %%
# In the left plot, the students form separate groups. In the right plot, the mean
# scores of the schools overlap, so a clustering of these means would not separate the
# types of schools.

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), sharex=True, sharey=True)
left.scatter(*scores.T, s=2, color="#9ecae1")
contents, share = fit.posterior.contents, topics.set_index("topic")["share"]
for topic in share.index[share >= 0.02]:
    mean, sd = contents.mean[topic - 1], contents.sd[topic - 1]
    left.errorbar(*mean, sd[1], sd[0], color="#08519c", capsize=2)
left.set(
    title="Students (dots) and topics (mean ± sd)", xlabel="maths", ylabel="reading"
)
for cluster in np.unique(fit.posterior.cluster):
    inside = fit.posterior.cluster == cluster
    right.scatter(*means[inside].T, s=14, label=f"cluster {cluster + 1}")
right.set(title="Mean scores of schools, by cluster", xlabel="maths")
right.legend(fontsize="small")
figure.tight_layout()
