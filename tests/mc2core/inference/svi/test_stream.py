"""A fit that goes on with new documents, proved: against an epoch of a fit, and what must not change a bit."""

import copy
import io
import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from helpers.crossed import crossed
from helpers.fits import gibbs, svi
from helpers.svi_twin import FAMILIES, small_corpus, states_equal

from mc2core import Corpus, Posterior
from mc2core.base import storage
from mc2core.inference import Stream
from mc2core.inference.running.loop import fit, standardise
from mc2core.inference.svi import births
from mc2core.inference.svi import engine as svi_engine
from mc2core.inference.svi import stream as svi_stream
from mc2core.inference.svi.documents import take_batch
from mc2core.inference.svi.local import document_level, local_step
from mc2core.inference.svi.merging import UnionScore
from mc2core.inference.svi.sticks import stick_counts, stick_posterior

SIZE = 7
FORMS = {
    "direct": {},
    "words": {"group_concentration": 1, "topic_concentration": 1, "topic_word_prior": "learn"},
    "told": {"n_clusters": 4, "max_clusters": None},
    "tables": {"max_tables": 3},
    "joint": {"max_tables": 3, "global_step": "joint"},
    "document level": {"document_level": True},
}


@pytest.fixture(autouse=True)
def _small_batches_go_to_threads_too(monkeypatch):
    monkeypatch.setattr(svi_engine, "_MIN_FOR_THREADS", 0)


def pair(form, **more):
    settings = {"max_clusters": 4, "max_topics": 5, "batch_size": SIZE, "contexts": FAMILIES} | FORMS[form] | more
    return svi(**{name: value for name, value in settings.items() if value is not None})


def documents(seed=3, n=40):
    corpus = small_corpus(seed, n_documents=n, n_words=12, mean_count=1.5)
    return Corpus(corpus.content, contexts=corpus.contexts)  # in their own units


def fitted(form, corpus=None, iterations=1, **more):
    return fit(corpus or documents(), *pair(form, **more), iterations=iterations, seed=2, progress=False)


def order(corpus, iteration):
    return np.concatenate(list(corpus.batches(SIZE, 2, iteration)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("iteration", [1, 2])
def test_one_pass_over_a_corpus_is_an_epoch_of_its_fit(form, iteration, monkeypatch):
    """Documents in the order of the epoch, from the state before it; joining takes all documents and is left out."""
    if form == "document level" and iteration == 1:
        iteration = 3  # documents of the first epoch are held where they start
    monkeypatch.setattr(svi_engine, "merge_alike", lambda *_: None)
    corpus = documents()
    before = fitted(form, corpus, max(iteration - 1, 1))
    if iteration == 1:
        before = copy.copy(before)
        before.state = pair(form).init(standardise(corpus, before.posterior.families), 2)
    after = fitted(form, corpus, iteration)
    taken = order(corpus, iteration)
    stream = Stream(before, passes=1).partial_fit(corpus.subset(taken))
    ours, theirs = stream._state.arrays(), after.state.arrays()
    assert np.array_equal(ours.pop("cluster"), theirs.pop("cluster")[taken])
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    assert stream.n_documents == stream.total_samples == 40
    one, other = stream.posterior.representative, after.posterior.representative
    for name in ("cluster_weights", "topic_given_cluster", "topic_words", "topic_weights", "natural", "log_joint"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert np.array_equal(stream.posterior.predict_proba(corpus), after.posterior.predict_proba(corpus))


@pytest.mark.parametrize(("form", "passes"), crossed(list(FORMS), [1, 3]))
def test_calls_threads_and_files_change_no_bit(form, passes, tmp_path, monkeypatch):
    monkeypatch.setattr(svi_stream, "_BLOCK", SIZE)
    done = fitted(form, iterations=2)
    before = {name: array.copy() for name, array in done.state.arrays().items()}
    new = documents(8, n=5 * SIZE + 3)
    once = Stream(done, total_samples=30, passes=passes).partial_fit(new)
    several = Stream(done, total_samples=30, passes=passes, threads=3)
    for number, (first, last) in enumerate(itertools.pairwise([0, SIZE, 4 * SIZE, new.n_documents])):
        several.partial_fit(new.subset(np.arange(first, last)))
        several.save(tmp_path / f"{number}.npz")
        several = Stream.load(tmp_path / f"{number}.npz", threads=1 + number)
        assert several.n_documents == last
    assert once._state.n_visited == several._state.n_visited == 3  # the fifth mini-batch filled the population
    assert states_equal(once._state, several._state)
    assert once.posterior.arrays().keys() == several.posterior.arrays().keys()
    for name, array in once.posterior.arrays().items():
        np.testing.assert_array_equal(several.posterior.arrays()[name], array, err_msg=name)
    assert all(np.array_equal(before[name], array) for name, array in done.state.arrays().items())
    read = Posterior.load(tmp_path / "2.npz")
    assert np.array_equal(read.predict_proba(new), once.posterior.predict_proba(new))
    assert len(read.cluster) == 30
    assert read.provenance["stream"]["documents"] == new.n_documents


@pytest.mark.parametrize(("form", "total_samples", "passes"), crossed(list(FORMS), [(20, 1), (4000, 1), (4000, 4)]))
def test_a_mini_batch_stands_for_the_population(form, total_samples, passes, monkeypatch):
    """Expected tokens, observed contexts and documents after one step: the old and new ones at the rate of the step."""
    monkeypatch.setattr(svi_stream, "_AGAIN", 0)
    corpus, new = documents(), documents(8, n=SIZE)
    done = fitted(form, corpus, iterations=2)
    stream = Stream(done, total_samples=total_samples, passes=passes)
    one, model, engine = stream._state, stream.model, stream.engine
    assert one.n_m.sum() == pytest.approx(done.state.n_m.sum() * total_samples / 40, rel=1e-9)
    tokens, contexts = one.n_m.sum(), one.context_totals.sum(axis=1)
    rate = engine.rate(model, done.state.n_updates)
    assert 0 < rate < 0.2
    stream.partial_fit(new)
    after = (1 - rate) * tokens + rate * total_samples / SIZE * new.n_tokens
    # however many passes; a topic that was suggested and has less than half a token is left out
    assert one.n_m.sum() == pytest.approx(after, rel=1e-9, abs=0.0 if passes == 1 else 0.5)
    tags = rate * total_samples / SIZE * new.contexts["tag"].sum()
    place = one.contexts.names.index("tag")
    assert one.context_totals.sum(axis=1)[place] == pytest.approx((1 - rate) * contexts[place] + tags, rel=1e-9)
    assert one.n_updates == done.state.n_updates + 1


@pytest.mark.parametrize("is_fixed", [False, True])
def test_clusters_weigh_as_documents_of_the_population(is_fixed):
    """A fit's clusters of n documents are those of 100 n, whatever the prior, and topics' words as many times more."""
    done = fitted("told" if is_fixed else "direct", iterations=2)
    stream = Stream(done, total_samples=4000)
    np.testing.assert_allclose(stream._state.n_k, 100 * done.state.n_k, rtol=1e-12)
    if is_fixed:  # no cluster was left out
        assert stream._state.n_k.sum() == pytest.approx(4000, rel=1e-9)
    known = done.posterior.representative.topic_words
    np.testing.assert_allclose(stream.posterior.representative.topic_words, 100 * known, rtol=1e-12)


def test_sticks_of_more_counts():
    counts = np.array([[3.0, 0.0, 2.5], [0.0, 0.0, 0.0]])
    one, other = (stick_posterior(factor * counts, 0.7) for factor in (1, 50))
    np.testing.assert_allclose(stick_posterior(50 * stick_counts(one, 0.7), 0.7), other, rtol=1e-12, atol=1e-12)
    assert (stick_counts(one, 0.9) >= 0).all()
    assert stick_posterior(stick_counts(np.empty((2, 0)), 0.7), 0.7).shape == (2, 0)


def test_it_follows_what_comes():
    """Topics of a fit on one half of the words move to the other half, which only the stream has."""
    rng = np.random.default_rng(0)
    old, new = (Corpus(rng.poisson(np.repeat(share, 5) * 2, (200, 10))) for share in ([1, 0.02], [0.02, 1]))
    done = fit(old, *svi(max_clusters=2, max_topics=3, batch_size=20), iterations=3, seed=0, progress=False)
    stream = Stream(done)
    scores = [stream.posterior.perplexity(new)]
    for _ in range(3):
        scores.append(stream.partial_fit(new).posterior.perplexity(new))
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < scores[0] / 1.5
    assert stream.n_documents == 600


@pytest.mark.parametrize("form", FORMS)
def test_a_pass_replaces_the_statistics_of_the_one_before(form, monkeypatch):
    """Three passes are steps from the state before the block, each with what the step before it left as its globals."""
    done, new = fitted(form, iterations=2), documents(8, n=SIZE)
    monkeypatch.setattr(svi_stream, "_AGAIN", 0)
    monkeypatch.setattr(Stream, "_n_new", lambda *_: (0, 0))
    ours = Stream(done, total_samples=50, passes=3).partial_fit(new)._state
    stream = Stream(done, total_samples=50)
    before, contexts = stream._state, stream.posterior.stacked(new)
    before.cluster = np.full(SIZE, -1, np.int32)
    before.contexts = contexts
    batch = take_batch(new, contexts, np.arange(SIZE))
    rate = stream.engine.rate(stream.model, done.state.n_updates)
    ahead = copy.deepcopy(before)
    for _ in range(3):
        # the local step asks the globals, which are those ahead; what it then moves are those before
        theirs = copy.deepcopy(before)
        theirs.step(batch, local_step(ahead, batch, None), 50 / SIZE, rate, None)
        ahead = theirs
    for name in ("topic_words", "n_m", "group_weights", "context_counts"):
        np.testing.assert_allclose(getattr(ours, name), getattr(ahead, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("form", ["direct", "document level", "tables"])
def test_topics_are_born_of_documents_unlike_those_before(form):
    """A third of the words is in no document of the fit, and in all that come: half of these are held out."""
    rng = np.random.default_rng(0)
    shares = np.repeat(np.eye(3) + 0.01, 5, axis=1)
    old = Corpus(rng.poisson(4 * shares[rng.integers(0, 2, 120)]))
    new = [Corpus(rng.poisson(4 * shares[np.full(60, 2)])) for _ in range(2)]
    more = {"max_clusters": 3, "max_topics": 6 if form == "tables" else None, "batch_size": 20, "contexts": {}}
    done = fit(old, *pair(form, **more), iterations=5, seed=0, progress=False)
    one, several = (Stream(done, passes=passes) for passes in (1, 3))
    born = sum(record.topics_born for record in several.fit_blocks(new[0]))
    plain = one.partial_fit(new[0]).posterior.perplexity(new[1])
    assert (born > 0) == (form != "tables")
    assert several.posterior.perplexity(new[1]) < plain * (0.8 if form != "tables" else 1.0)
    assert several._state.n_m.size == len(several._state.arrays()["n_m"])
    told = Stream(fit(old, *pair(form, **(more | {"max_topics": 2})), iterations=5, seed=0, progress=False))
    assert told.partial_fit(new[0])._state.n_m.size <= 2


def test_a_new_word_costs_documents_the_mass_of_the_prior():
    """And not by that of topics without tokens, which the block may add: of those it takes hundreds of nats."""
    rng = np.random.default_rng(0)
    shares = np.repeat(np.eye(3), 10, axis=1) / 10
    old, new = (sp.csr_matrix(rng.multinomial(20, shares[np.arange(n) % 3])) for n in (300, 30))
    words = [f"word {number}" for number in range(30)]
    done = fit(Corpus(old, words), *svi(document_level=True), iterations=20, seed=0, progress=False)
    of_new = sp.csr_matrix(2 * (np.arange(30) < 8)[:, None])

    def told(content, names):
        stream = Stream(done)
        placed = stream.grow(Corpus(content, names))
        assert stream._n_new(30)[1] > 0
        known = stream.posterior
        (record,) = stream.fit_blocks(placed)
        return record.log_evidence, known

    plain, _ = told(new, words)
    with_new, known = told(sp.hstack([new, of_new], format="csr"), [*words, "neu"])
    masses = np.log(known.word_given_topic[:, known.vocabulary.index("neu")])
    assert with_new - plain == pytest.approx(16 * masses.mean(), abs=16.0)


@pytest.mark.parametrize("form", ["direct", "document level", "tables"])
def test_documents_that_came_before_are_gone_over_again(form, monkeypatch):
    """In mini-batches that stand for the population, at the rates that follow; what is kept of them is what came."""
    monkeypatch.setattr(svi_stream, "_BLOCK", SIZE)
    corpus, new = documents(), documents(8, n=SIZE)
    stream, visited = Stream(fitted(form, corpus)), []
    step = stream.engine.batch_step

    def noted(corpus, state, rows, rate, pool):
        before = state.topic_words.sum() * state.shrink
        done = step(corpus, state, rows, rate, pool)
        n_tokens = int(corpus.subset(rows).n_tokens)
        # tokens are those before and those of the mini-batch, as many as the population's, at the rate
        expected = (1.0 - rate) * before + rate * 40 / len(rows) * n_tokens
        visited.append((rows, rate, state.topic_words.sum() * state.shrink, expected))
        return done

    monkeypatch.setattr(stream.engine, "batch_step", noted)
    n_updates = stream._state.n_updates
    stream.partial_fit(new)
    came = sp.vstack([corpus.content, new.content]).toarray()
    assert np.array_equal(stream._kept.content.toarray(), came)  # fewer than are kept at most
    mean, sd = stream.posterior.units["time"]
    time = (np.concatenate([corpus.contexts["time"], new.contexts["time"]]) - mean) / sd
    assert np.array_equal(stream._kept.contexts["time"], time, equal_nan=True)
    rows = np.concatenate([one[0] for one in visited])
    assert len(rows) == len(set(rows.tolist())) == 6 * SIZE
    rates = [stream.engine.rate(stream.model, n_updates + 1 + number) for number in range(len(visited))]
    assert [one[1] for one in visited] == rates
    np.testing.assert_allclose([one[2] for one in visited], [one[3] for one in visited], rtol=1e-6)
    assert (len(stream.posterior.cluster), stream.n_documents) == (40, SIZE)


def test_documents_kept_in_a_file_are_in_its_units(tmp_path):
    """Numbers are standardised there already: a second time, all old documents would have nearly the same."""
    corpus = documents().standardised("time").standardised("place")
    done = fitted("direct", corpus)
    done.posterior.reservoir = corpus
    done.posterior.save(tmp_path / "fit.npz")
    read = Posterior.load(tmp_path / "fit.npz")
    assert read.reservoir.units == read.units == corpus.units
    saved = SimpleNamespace(posterior=read, state=done.state, trace=done.trace, corpus=read.reservoir)
    stream = Stream(saved)
    stream.save(tmp_path / "stream.npz")
    for one in (Stream(done), stream, Stream.load(tmp_path / "stream.npz")):
        np.testing.assert_array_equal(one._kept.contexts["time"], corpus.contexts["time"])


def test_corpora_with_other_names_are_refused_and_change_nothing(tmp_path):
    corpus = documents()
    words = [f"word{number}" for number in range(12)]
    named = Corpus(corpus.content, words, corpus.contexts, context_names={"tag": ["a", "b", "c"]})
    named = named.standardised("time").standardised("place")
    done = fitted("direct", named)
    stream = Stream(done)
    before = {name: array.copy() for name, array in stream._state.arrays().items()}
    other = Corpus(corpus.content, words[::-1], corpus.contexts)
    with pytest.raises(ValueError, match="the corpus has other words than the model was fitted on"):
        stream.partial_fit(other)
    renamed = Corpus(corpus.content, words, corpus.contexts, context_names={"tag": ["a", "c", "b"]})
    with pytest.raises(ValueError, match="context 'tag' has other columns than the model was fitted on"):
        stream.partial_fit(renamed)
    with pytest.raises(ValueError, match="context 'hits' is not in the corpus; it has: none"):
        stream.partial_fit(Corpus(corpus.content, words))
    assert all(np.array_equal(before[name], array) for name, array in stream._state.arrays().items())
    assert stream.n_documents == 0
    # numbers in their own unit are brought to the fit's
    own = Corpus(corpus.content, words, corpus.contexts, context_names={"tag": ["a", "b", "c"]})
    stream.partial_fit(own)
    unit = Stream(done).partial_fit(named)
    assert unit.n_documents == 40
    for name, array in unit._state.arrays().items():
        np.testing.assert_allclose(stream._state.arrays()[name], array, rtol=1e-9, atol=1e-9, err_msg=name)
    stream.save(tmp_path / "stream.npz")
    again = Stream.load(tmp_path / "stream.npz").posterior
    assert (again.vocabulary, again.context_names, again.units) == (words, {"tag": ["a", "b", "c"]}, named.units)


def test_what_cannot_go_on_is_refused(tmp_path):
    corpus = documents()
    for one, message in (
        (svi(batch_size=None, contexts=FAMILIES), "^batch_size is None; a stream needs mini-batches$"),
        (gibbs(contexts=FAMILIES), "^the fit is by gibbs; a stream continues a fit by svi$"),
    ):
        done = fit(corpus, *one, iterations=2, seed=0, progress=False)
        with pytest.raises(ValueError, match=message):
            Stream(done)
    done = fitted("direct")
    with pytest.raises(ValueError, match="total_samples is 0; it must be"):
        Stream(done, total_samples=0)
    done.posterior.save(tmp_path / "fit.npz")
    with pytest.raises(ValueError, match=r"fit.npz holds a posterior, but no stream to continue$"):
        Stream.load(tmp_path / "fit.npz")
    Stream(done).save(tmp_path / "stream.npz")
    arrays = storage.read_arrays(tmp_path / "stream.npz")
    for name, value in (("n_m", np.zeros((2, 2))), ("cluster", np.array([99])), ("shrink", np.ones(2))):
        storage.write_arrays(tmp_path / "wrong.npz", arrays | {f"stream.{name}": value})
        with pytest.raises(ValueError, match=rf"wrong.npz is not a saved stream: '{name}'"):
            Stream.load(tmp_path / "wrong.npz")


def test_a_document_without_a_possible_cluster_is_named(monkeypatch):
    done, new = fitted("direct"), documents(8)
    stream, same = (Stream(done, passes=1) for _ in range(2))
    same.partial_fit(new.subset(np.arange(14)))
    known = stream.posterior.stacked(new)
    known.statistics.data[known.statistics.indptr[17] : known.statistics.indptr[18]] = np.nan
    monkeypatch.setattr(Posterior, "stacked", lambda *_: known)
    with pytest.raises(ValueError, match="document 17: the weights of its clusters have no finite sum above 0"):
        stream.partial_fit(new)
    assert stream.n_documents == 14
    assert states_equal(stream._state, same._state)


def test_corpora_and_streams_on_disk_are_taken_as_they_are(tmp_path, output_of):
    done, new = fitted("direct"), documents(8)
    new.save(tmp_path / "new")
    stored = Corpus.load(tmp_path / "new")
    assert states_equal(Stream(done).partial_fit(stored)._state, Stream(done).partial_fit(new)._state)
    stream = Stream(done).partial_fit(stored)
    stream.save(tmp_path / "stream.npz")
    table = pd.read_csv(io.StringIO(output_of(f"clusters {tmp_path}/stream.npz {tmp_path}/new")))
    assert table["cluster"].nunique() > 1
    assert len(table) == new.n_documents


def test_no_pass_holds_documents_where_the_last_one_seated_them(monkeypatch):
    """A block of more mini-batches than the fit had steps: it is in what would be the first epoch of its documents."""
    done, new, held = fitted("document level"), documents(8, n=100), []
    of_module = document_level.held_clusters

    def noted(state, batch):
        if batch.n_documents == 100:
            assert document_level.n_epochs(state) == 0
            held.append(of_module(state, batch).copy())
        return of_module(state, batch)

    monkeypatch.setattr(document_level, "held_clusters", noted)
    Stream(done).partial_fit(new)
    assert len(held) >= 3
    assert (np.array(held) == -1).all()


#: fits of the corpora below, which streams leave as they are
BEGUN = {}


def fitted_once(of, corpus, seed):
    if (of, seed) not in BEGUN:
        BEGUN[of, seed] = fit(corpus, *svi(document_level=True), iterations=10, seed=seed, progress=False)
    return BEGUN[of, seed]


class TestBirthsOfTopics:
    """200 documents of three topics of twelve words each; those of a fourth may come."""

    @staticmethod
    def begun():
        rng = np.random.default_rng(0)

        def drawn(topics):
            return Corpus(rng.multinomial(18, np.repeat(np.eye(4), 12, axis=1)[topics] / 12))

        return fitted_once("topics", drawn(rng.integers(0, 3, 200)), 0), drawn, rng

    @pytest.mark.parametrize("total_samples", [None, 10_000])
    def test_none_is_born_where_nothing_is_new(self, total_samples):
        done, drawn, rng = self.begun()
        stream, evidence = Stream(done, total_samples=total_samples), []
        for _ in range(4):
            (record,) = stream.fit_blocks(drawn(rng.integers(0, 3, 40)))
            evidence.append(record.log_evidence / record.tokens)
            assert len(stream._state.n_m) == 3
        assert evidence[-1] > evidence[0] - 0.02

    @pytest.mark.parametrize("total_samples", [None, 10_000])
    def test_a_new_one_is_born_alone(self, total_samples):
        done, drawn, rng = self.begun()
        stream = Stream(done, total_samples=total_samples)
        (record,) = stream.fit_blocks(drawn(np.where(rng.random(40) < 0.25, 3, rng.integers(0, 3, 40))))
        assert record.topics_born == 1
        assert stream.posterior.word_given_topic[-1][36:].sum() > 0.9

    def test_words_are_those_of_a_topic_up_to_chance(self, monkeypatch):
        """Of topics with many rare words, which chi-squared tables would hold for far too unlikely when they come."""
        rng = np.random.default_rng(0)
        state = Stream(fitted("document level"))._state
        psi = rng.dirichlet(np.full(300, 0.1), 4)
        state.topic_words, state.n_m, state.topic_word_prior = 5e3 * psi.T, np.full(4, 5e3), 0.01
        state.shrink = 0.5  # as after a step
        state.topic_words = 2.0 * state.topic_words
        own = (5e3 * psi + 0.01) / (5e3 + 3.0)
        words, same = np.arange(300), np.array([rng.multinomial(60, own[n % 4]) for n in range(800)]).T
        assert births.is_of_one_topic(state, words, same).mean() > 0.98
        some = np.flatnonzero(same.any(axis=1))[::-1]  # in another order, without words that none has
        assert np.array_equal(
            births.is_of_one_topic(state, some, same[some]), births.is_of_one_topic(state, words, same)
        )
        mixed = np.array(
            [rng.multinomial(60, 0.5 * own[n % 4] + 0.5 * rng.dirichlet(np.full(300, 0.1))) for n in range(200)]
        )
        assert births.is_of_one_topic(state, words, mixed.T).mean() < 0.02
        assert births.is_of_one_topic(state, words, np.zeros((300, 1))).all()
        # the mean and deviation of Pearson's statistic, by draws, of less rare words
        monkeypatch.setattr(births, "_DEVIATIONS", 0.5)
        state.topic_words = 2.0 * 5e3 * rng.dirichlet(np.full(12, 2.0), 4).T
        own = (0.5 * state.topic_words[:, 0] + 0.01) / (5e3 + 0.12)
        drawn = rng.multinomial(10, own, 20_000)
        statistic = ((drawn - 10 * own) ** 2 / (10 * own)).sum(axis=1)
        within = statistic <= statistic.mean() + 0.5 * statistic.std()
        state.n_m, state.topic_words = state.n_m[:1], state.topic_words[:, :1]
        assert (births.is_of_one_topic(state, np.arange(12), drawn.T) == within).mean() > 0.99


class TestBirthsOfClusters:
    """300 documents of three subjects, with three topics each, are fitted; those of a fourth may come."""

    @staticmethod
    def begun(seed):
        rng = np.random.default_rng(seed)
        topics = rng.dirichlet(np.full(400, 0.05), (4, 3))

        def drawn(subjects):
            shares = [rng.dirichlet(np.full(3, 2.0)) @ topics[subject] for subject in subjects]
            return Corpus(np.array([rng.multinomial(40, one) for one in shares]))

        return fitted_once("clusters", drawn(rng.integers(0, 3, 300)), seed), drawn, rng

    @staticmethod
    def clusters(stream, drawn):
        """The cluster of most of 25 documents of each subject, and how many of them are in it."""
        cluster = stream.posterior.predict(drawn(np.repeat(np.arange(4), 25))).reshape(4, 25)
        sizes = np.array([np.bincount(one, minlength=cluster.max() + 1) for one in cluster])
        return sizes.argmax(axis=1).tolist(), sizes.max(axis=1)

    def test_a_new_subject_gets_one_of_its_own(self, tmp_path):
        done, drawn, rng = self.begun(1)
        stream = Stream(done)
        (record,) = stream.fit_blocks(drawn(np.where(rng.random(100) < 0.25, 3, rng.integers(0, 3, 100))))
        assert (record.clusters_born, record.clusters_gone) == (1, 0)
        assert record.in_small >= 15  # it held none before
        cluster, sizes = self.clusters(stream, drawn)
        assert len(set(cluster)) == 4
        assert sizes.min() >= 23
        stream.save(tmp_path / "stream.npz")
        again, new = Stream.load(tmp_path / "stream.npz"), drawn(rng.integers(0, 4, 100))
        assert states_equal(again.partial_fit(new)._state, stream.partial_fit(new)._state)
        assert len(stream._state.tau.n_km) == 4

    def test_older_ones_stay_where_only_the_new_subject_comes(self):
        """For three days, until the latest documents, as many as the population, are all of it."""
        done, drawn, _ = self.begun(0)
        stream = Stream(done)
        for _ in range(3):
            stream.partial_fit(drawn(np.full(100, 3)))
        cluster, sizes = self.clusters(stream, drawn)
        assert len(set(cluster)) == 4
        assert sizes.min() >= 20
        assert len(stream.posterior.cluster) == 300

    @pytest.mark.parametrize("total_samples", [None, 30_000])
    def test_without_anything_new_none_is_born_and_bits_are_equal(self, total_samples, monkeypatch):
        done, drawn, rng = self.begun(2)
        stream, plain = (Stream(done, total_samples=total_samples) for _ in range(2))
        tried = []
        monkeypatch.setattr(
            svi_stream, "add_new_clusters", lambda *given: tried.append(given[5]) or births.add_new_clusters(*given)
        )
        for new in (drawn(rng.integers(0, 3, 100)) for _ in range(2)):
            stream.partial_fit(new)
            with monkeypatch.context() as without:
                without.setattr(svi_stream, "add_new_clusters", lambda *_: None)
                plain.partial_fit(new)
        assert len(tried) == 2
        assert min(tried) > 1
        assert states_equal(stream._state, plain._state)

    def test_a_group_may_part_if_the_union_gains_less_than_allowed(self, monkeypatch):
        """Held against what joining says of the union of both parts, which share no document."""
        stream = Stream(fitted("document level", contexts={}))
        state, new = stream._state, documents(8, n=SIZE)
        state.contexts = stream.posterior.stacked(new.with_contexts({}))
        batch = take_batch(new, state.contexts, np.arange(SIZE)).narrowed()
        state.cluster = np.zeros(SIZE, np.int32)
        size = 0.5 * state.n_k.min()  # clusters are in order of size
        members = sp.csr_matrix(np.eye(SIZE)[[1, 4]].sum(axis=0))
        alike = births.Alike(members, np.array([size]), 0.1 * state.n_m[None, :])
        tables, n_k = births._tables(state) * alike.topics, np.append(state.n_k, size)
        left = np.maximum(state.tau.n_km[:1] - tables, 0.0)
        n_k[0] -= size
        parted = np.concatenate([left, state.tau.n_km[1:], tables])
        gain = UnionScore(state, n_k, parted).gains(0, np.array([len(n_k) - 1]))[0]
        assert gain > 0
        for loss, may in ((1.001, True), (0.999, False)):
            monkeypatch.setattr(births, "_MAX_LOSS", loss * gain / tables.sum())
            assert births._may_part(state, batch, alike, 1.0) == may

    def test_nothing_is_tried_where_no_group_may_part(self, monkeypatch):
        done, drawn, _ = self.begun(0)
        tried, try_births = [], births._tried
        monkeypatch.setattr(births, "_tried", lambda *given: tried.append(given) or try_births(*given))
        monkeypatch.setattr(births, "_MAX_LOSS", -np.inf)
        new = drawn(np.full(100, 3))
        stream = Stream(done).partial_fit(new)
        assert not tried
        monkeypatch.setattr(svi_stream, "add_new_clusters", lambda *_: None)
        assert states_equal(stream._state, Stream(done).partial_fit(new)._state)

    def test_the_number_told_and_the_most_clusters_are_kept(self):
        done, drawn, _ = self.begun(0)
        new = drawn(np.full(100, 3))
        for name in ("n_clusters", "max_clusters"):
            old = drawn(np.arange(60) % 3)
            few = fit(old, *svi(document_level=True, **{name: 3}), iterations=3, seed=0, progress=False)
            assert len(Stream(few).partial_fit(new)._state.tau.n_km) <= 3
        assert len(Stream(done).partial_fit(new)._state.tau.n_km) > 3

    def test_clusters_that_are_added_hold_what_they_begin_with(self):
        stream = Stream(fitted("document level"))
        state, new = stream._state, documents(8, n=SIZE)
        state.contexts = stream.posterior.stacked(new)
        batch = take_batch(new, state.contexts, np.arange(SIZE)).narrowed()
        state.rescale()
        state.context_shrink, state.context_counts = 0.5, 2.0 * state.context_counts  # as after a step
        before, rows = state.copy(), state.rows_of(batch)
        since = {name: one.copy() for name, one in rows.items()}
        n_km = np.arange(2.0 * len(state.n_m)).reshape(2, -1)
        contexts = np.ones((2, len(batch.columns)))
        births.add_clusters(state, np.array([3.0, 5.0]), n_km, contexts, batch, rows)
        np.testing.assert_allclose(state.n_k, [*before.n_k, 3.0, 5.0])
        np.testing.assert_array_equal(state.tau.n_km, [*before.tau.n_km, *n_km])
        natural = state.natural - state.contexts.prior
        np.testing.assert_allclose(natural[:-2], before.natural - state.contexts.prior)
        np.testing.assert_allclose(natural[-2:, batch.columns], 1.0)
        assert natural[-2:].sum() == pytest.approx(2 * len(batch.columns))
        totals = state.contexts.sums_by_context(state.context_shrink * state.context_counts)
        np.testing.assert_allclose(state.context_totals, totals, atol=1e-9)
        state.undo_steps(batch, rows)  # as before the block, with clusters of nothing
        np.testing.assert_allclose(state.n_k, [*before.n_k, 0.0, 0.0], atol=1e-12)
        np.testing.assert_array_equal(state.tau.n_km[:-2], since["n_km"])
        assert not state.tau.n_km[-2:].any()
        assert not state.context_counts[batch.columns, -2:].any()
