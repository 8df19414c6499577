"""States of four documents at the document level, and exact laws of their clusters."""

from __future__ import annotations

import itertools
import math

import numpy as np
from helpers.gibbs_chains import BATCHES, assert_visits_follow, corpus_of
from helpers.gibbs_enumeration import canonical, stirling
from helpers.gibbs_transitions import CONTEXTS
from scipy.special import gammaln

from mc2core.compute import streams
from mc2core.families.stacked import StackedContexts
from mc2core.inference.gibbs.assignments import Assignments
from mc2core.inference.gibbs.state import DocumentLevelState
from mc2core.models import MC2

DOCUMENTS = [[0, 0, 1, 1], [1, 1], [], [0, 2, 2]]
TOPIC = np.array([0, 0, 0, 1, 1, 1, 0, 2, 2], np.int32)
EPS = np.array([0.4, 0.3, 0.1])


def corpus_and_state(families):
    corpus = corpus_of(DOCUMENTS, 3, CONTEXTS)
    start = np.concatenate([[0], np.cumsum(corpus.document_lengths)])
    n_jm = np.zeros((4, 3), int)
    np.add.at(n_jm, (np.repeat(np.arange(4), corpus.document_lengths), TOPIC), 1)
    return StackedContexts(corpus, families), start, n_jm


def assignments_at(z, start):
    found = Assignments(np.array(z, np.int32), TOPIC.copy(), start, EPS.copy(), 1.0 - EPS.sum())
    found.count()
    return found


def held_state(assignments, corpus, concentrations, omega, proportions):
    """A state without contexts of which all concentrations are held."""
    given = assignments, concentrations, 0.01, corpus.content, StackedContexts(corpus, {}), None, {}, omega
    return DocumentLevelState(MC2(), *given, proportions=proportions, tables=np.zeros_like(assignments.n_km))


def assert_splits_and_merges_follow(chain, propose, exact, table, calls):
    """Tokens' topics have their law ``exact`` after calls of ``propose(state, proportions, key)``, which gives
    proportions and how many splits and merges were made.
    """
    state, states = chain.assignments, {topics: i for i, (_, topics) in enumerate(exact)}
    made, visits = np.zeros(2, int), np.zeros((BATCHES, len(exact)))
    for i in range(calls):
        chain.proportions, done = propose(state, chain.proportions, streams.key(i, "test"))
        made += done
        # epsilon and tau given l: these moves hold the rests of both
        chain.move_all_but_tokens(0, i, None, is_burn_in=True)
        visits[i * BATCHES // calls, states[canonical(state.topic)]] += 1
    assert abs(made[0] - made[1]) < 6  # topics at the end, at most
    assert made.min() > calls / 20
    assert_visits_follow(visits, table, np.array(list(exact.values())))


def log_contexts(contexts, z):
    total = 0.0
    for k in range(max(z) + 1):
        statistics = np.asarray(contexts.statistics[np.flatnonzero(np.array(z) == k)].sum(axis=0)).ravel()
        total += float(contexts.log_marginal(contexts.prior + statistics))
    return total


def log_topics_of_cluster(n_jm, eps, v, omega):
    """ln of the integral over tau of prod_j prod_m G(omega tau_m + n_jm) / G(omega tau_m), by the sum over tables."""
    cells = [(j, m) for j, m in zip(*np.nonzero(n_jm), strict=True)]
    total = 0.0
    for tables in itertools.product(*(range(1, n_jm[cell] + 1) for cell in cells)):
        t = np.zeros(len(eps))
        weight = 1.0
        for (j, m), number in zip(cells, tables, strict=True):
            t[m] += number
            weight *= stirling(int(n_jm[j, m]), number) * omega**number
        law = gammaln(v) - gammaln(v + t.sum()) + (gammaln(v * eps + t) - gammaln(v * eps)).sum()
        total += weight * math.exp(law)
    return math.log(total)
