"""Letters and simulated corpora: what was drawn agrees with the truth that is handed out beside it.

Statistical checks use fixed seeds; each was chosen so that a right sampler fails it with a chance below 1e-6.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mc2core.base import storage
from mc2core.compute import streams
from mc2core.posterior import clustering
from mc2papers.datasets.origins import LAWS
from mc2papers.datasets.simulated import letters, shapes
from mc2papers.datasets.simulated.names import author_names, pseudo_words
from mc2papers.datasets.simulated.shapes import SHAPES, WholeNumber, draw_counts, simulate
from mc2papers.datasets.simulated.truth import Truth


class TestLetters:
    def test_thirteen_distinct_letters(self):
        images = letters.bitmaps()
        assert list(images) == sorted(set("".join(letters.WORDS)))
        assert len(images) == 13
        assert all(image.shape == (7, 5) for image in images.values())
        flat = np.array([image.ravel() / image.sum() for image in images.values()])
        distance = np.abs(flat[:, None] - flat[None]).sum(axis=2) + 9 * np.eye(13)
        assert distance.min() > 0.39  # as the comment in letters.py says
        names = list(images)
        assert distance[names.index("M"), names.index("N")] == distance.min()
        both = images["M"] & images["N"]
        assert both.sum() >= 14
        assert (images["I"] & images["T"]).sum() == images["T"].sum()

    def test_letters_are_those_of_the_paper(self):
        corpus, truth = letters.simulate(0)
        assert (corpus.n_documents, corpus.n_words) == (400, 35)
        assert (corpus.document_lengths == 50).all()
        assert np.bincount(corpus.labels).tolist() == [100] * 4
        assert corpus.label_names == list(letters.WORDS)
        assert (corpus.labels == truth.cluster).all()
        assert (corpus.labels[:8] != np.arange(8) % 4).any()  # the order tells nothing
        assert truth.topic_given_cluster.sum(axis=1) == pytest.approx(np.ones(4))

    def test_each_distinct_letter_of_a_word_is_as_likely(self):
        """ICML14 section 4.1: uniform over the letters of the word, though INTERNATIONAL has three N and one O."""
        _, truth = letters.simulate(0)
        names = list(letters.bitmaps())
        for letters_of, shares in zip(
            ["AEILNORT", "CEFNOR", "ACEHIMN", "AEGILNR"], truth.topic_given_cluster, strict=True
        ):
            here = [names.index(letter) for letter in letters_of]
            assert shares[here] == pytest.approx(np.full(len(here), 1 / len(here)))
            assert np.delete(shares, here).tolist() == [0.0] * (13 - len(here))

    def test_letters_follow_their_truth(self):
        corpus, truth = letters.simulate(1, n_documents=2000)
        expected = truth.topic_given_cluster @ truth.word_given_topic
        for k in range(4):
            seen = np.asarray(corpus.content[np.flatnonzero(corpus.labels == k)].sum(axis=0)).ravel()
            dark = expected[k] > 0
            assert seen[~dark].sum() == 0
            assert stats.chisquare(seen[dark], expected[k][dark] * seen.sum()).pvalue > 1e-6
            numbers = corpus.contexts["number"][corpus.labels == k]
            spread = letters.CONTEXT_SD[k]
            assert stats.kstest(numbers, "norm", (letters.CONTEXT_MEANS[k], spread)).pvalue > 1e-6

    def test_noise_is_uniform_over_the_pixels(self):
        clean, truth = letters.simulate(2, n_documents=1000)
        noisy, _ = letters.simulate(2, n_documents=1000, noise=0.3)
        dark = (truth.topic_given_cluster @ truth.word_given_topic > 0).all(axis=0)
        assert dark.sum() < 35
        expected = 0.3 / 35 + 0.7 * (truth.topic_given_cluster @ truth.word_given_topic)[noisy.labels].mean(axis=0)
        seen = np.asarray(noisy.content.sum(axis=0)).ravel()
        assert stats.chisquare(seen, expected * seen.sum()).pvalue > 1e-6
        assert (clean.labels == noisy.labels).all()

    def test_sized_variants(self):
        corpus, truth = letters.simulate(3, n_documents=5, n_tokens=1, with_context=False)
        assert corpus.document_lengths.tolist() == [1] * 5
        assert (corpus.contexts, truth.contexts) == ({}, {})

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"n_documents": 0}, "n_documents is 0; it must be at least 1"),
            ({"n_tokens": 0}, "n_tokens is 0; it must be at least 1"),
            ({"noise": 1.5}, "noise is 1.5; it must lie between 0 and 1"),
            ({"noise": float("nan")}, "noise is nan; it must lie between 0 and 1"),
            ({"seed": -1}, "seed is -1"),
        ],
    )
    def test_wrong_settings_are_refused(self, settings, message):
        with pytest.raises(ValueError, match=message):
            letters.simulate(**{"seed": 0} | settings)


class TestShapes:
    @pytest.mark.parametrize("name", SHAPES)
    def test_shapes_have_the_papers_size(self, name):
        shape = SHAPES[name]
        expected = {
            "nips": (1740, 13_649),
            "pnas": (79_800, 36_782),
            "nuswide": (2054 + 1357, 500),
            "wikipedia": (1_100_000, 7702),
            "pubmed": (1_400_000, 10_000),
            "aua": (1_200_000, 10_000),  # "more than one million"
        }[name]
        assert (shape.n_documents, shape.n_words) == expected

    @pytest.mark.parametrize("name", SHAPES)
    def test_a_scaled_corpus_is_like_its_shape(self, name):
        scale = {"nips": 0.2, "pnas": 0.02, "nuswide": 0.5}.get(name, 0.001)
        corpus, truth = simulate(SHAPES[name], seed=0, scale=scale)
        shape = SHAPES[name].scaled(scale)
        assert (corpus.n_documents, corpus.n_words) == (shape.n_documents, shape.n_words)
        assert corpus.document_lengths.min() >= 1
        assert corpus.document_lengths.mean() == pytest.approx(shape.mean_tokens, rel=0.1)
        assert len(set(corpus.vocabulary)) == corpus.n_words
        assert set(corpus.contexts) == set(shape.contexts)
        for context, known in shape.contexts.items():
            values = corpus.contexts[context]
            if isinstance(known, WholeNumber):
                assert values.min() >= known.low
                assert values.max() <= known.high
                assert (values == np.rint(values)).all()
            else:
                assert values.shape[1] == known.n_values == len(set(corpus.context_names[context]))
                assert 1 <= values.sum() / corpus.n_documents <= known.mean_count * 1.1
        for table in (truth.topic_given_cluster, truth.word_given_topic, truth.cluster_weights[None]):
            assert table.sum(axis=1) == pytest.approx(np.ones(len(table)))
        if shape.classes:
            assert all(len(set(corpus.labels[truth.cluster == k])) == 1 for k in set(truth.cluster))
        else:
            assert (corpus.labels == truth.cluster).all()

    def test_a_scaled_corpus_is_as_distinct_as_its_shape(self):
        def distances(scale):
            _, truth = simulate(replace(SHAPES["nips"], mean_tokens=100.0), seed=0, scale=scale)
            tables = truth.word_given_topic, truth.contexts["author"], truth.contexts["title"]
            return [float(np.abs(table - table.mean(axis=0)).sum(axis=1).mean()) for table in tables]

        assert distances(0.1) == pytest.approx(distances(0.5), abs=0.1)

    def test_a_given_vocabulary_is_not_scaled(self):
        shape = SHAPES["wikipedia"].scaled(0.001)
        assert (shape.n_documents, shape.n_words, shape.mean_tokens) == (1100, 7702, 150.0)
        assert {name: bag.n_values for name, bag in shape.contexts.items()} == {
            "writer": 1000,
            "category": 1000,
            "topic": 25,
        }
        writers = simulate(SHAPES["wikipedia"], seed=0, scale=0.001)[0].contexts["writer"]
        assert (writers.sum(axis=1) == 1).all()  # an article has one first writer

    def test_the_nips_shape_is_like_nips(self):
        """Figures of the real corpus beside bounds: the simulator shall be like it, not equal it."""
        corpus, truth = simulate(SHAPES["nips"], seed=0)
        frequency = np.sort(np.asarray(corpus.content.sum(axis=0)).ravel())[::-1] / corpus.n_tokens
        seen = frequency[frequency > 0]
        assert 0.003 < frequency[0] < 0.02  # real: 0.0086
        assert 2200 < np.exp(-(seen * np.log(seen)).sum()) < 3600  # real: 2907
        word_given_cluster = truth.topic_given_cluster @ truth.word_given_topic
        log_word = np.log(np.maximum(word_given_cluster, 1e-300))[corpus.labels]
        per_token = corpus.content.multiply(log_word).sum() / corpus.n_tokens
        assert 1500 < np.exp(-per_token) < 2700  # the best held-out figure on the real corpus is near 2300
        authors = corpus.contexts["author"]
        assert authors.data.max() == 1
        assert 3500 < authors.nnz < 4500  # real: 3990
        assert corpus.contexts["title"].data.max() > 1
        assert 20 < np.bincount(corpus.labels).max() < 900  # clusters of unequal size

    def test_the_nuswide_shape_needs_words_and_tags_to_tell_classes(self):
        """ICML14 table 3 asks how well classes are found by words and tags: words alone must not say all."""
        corpus, truth = simulate(SHAPES["nuswide"], seed=0, scale=0.2)
        assert (np.bincount(corpus.labels) >= 10).sum() >= 7  # figure 6 draws seven clusters
        words, tags = truth.topic_given_cluster @ truth.word_given_topic, truth.contexts["tag"]

        def agreement(**known):
            """NMI of the classes with the likeliest ones under the true parameters, by so many words and tags."""
            log = np.log(np.maximum(truth.cluster_weights, 1e-300))
            for counts, table in known.values():
                log = log + counts @ np.log(np.maximum(table, 1e-300)).T
            return clustering.nmi(corpus.labels, log.argmax(axis=1))

        alone = agreement(words=(corpus.content, words))
        assert 0.8 < alone < 0.97
        assert agreement(words=(corpus.content, words), tags=(corpus.contexts["tag"], tags)) > alone + 0.03


class TestWords:
    def test_words_follow_topics_and_clusters(self):
        """draw_counts against the exact law: total counts of a cluster are multinomial."""
        rng = streams.generator(5, "test")
        topic_given_cluster = rng.dirichlet(np.ones(3), 2)
        word_given_topic = rng.dirichlet(np.full(40, 0.3), 3)
        word_given_topic[:, 7] = 0.0
        word_given_topic /= word_given_topic.sum(axis=1, keepdims=True)
        cluster = rng.integers(0, 2, 3000)
        lengths = rng.integers(0, 80, 3000)
        counts = draw_counts(cluster, lengths, topic_given_cluster, word_given_topic, 5, "test")
        assert (np.asarray(counts.sum(axis=1)).ravel() == lengths).all()
        for k in range(2):
            expected = topic_given_cluster[k] @ word_given_topic
            seen = np.asarray(counts[np.flatnonzero(cluster == k)].sum(axis=0)).ravel()
            likely = expected * seen.sum() > 5
            assert seen[7] == 0
            rest = [seen[~likely].sum()], [(expected[~likely] * seen.sum()).sum() + 1e-9]
            seen, expected = np.append(seen[likely], rest[0]), np.append(expected[likely] * seen.sum(), rest[1])
            assert stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue > 1e-6

    def test_they_vary_from_document_to_document(self):
        """Tokens are drawn anew in each document: variance over documents is that of a multinomial."""
        p = np.array([[0.2, 0.3, 0.5]])
        counts = draw_counts(np.zeros(4000, dtype=int), np.full(4000, 50), np.eye(1), p, 6, "test").toarray()
        assert counts.var(axis=0) == pytest.approx((50 * p * (1 - p)).ravel(), rel=0.15)  # 6 standard errors

    def test_blocks_do_not_repeat_each_other(self, monkeypatch):
        monkeypatch.setattr(shapes, "_BLOCK_TOKENS", 500)
        p = np.full((1, 1000), 0.001)
        counts = draw_counts(np.zeros(40, dtype=int), np.full(40, 100), np.eye(1), p, 7, "test").toarray()
        assert len(np.unique(counts, axis=0)) == 40
        assert (counts.sum(axis=1) == 100).all()


class TestCorrelated:
    def test_words_are_bursty_as_an_urn_is(self, monkeypatch):
        """With one topic, two tokens of a document are the same word with probability (1 + u q) / (1 + u), u the
        urn's mass and q that of two independent draws (Dirichlet compound multinomial)."""
        monkeypatch.setattr(shapes, "_URN", 20.0)
        p = np.array([[0.1, 0.2, 0.3, 0.4]])
        n, length = 6000, 30
        zeros = np.zeros(n, dtype=int)
        counts, share = shapes._draw_correlated(zeros, np.full(n, length), np.ones((1, 1)), p, 3)
        counts = counts.toarray()
        assert (counts.sum(axis=1) == length).all()
        assert share.tolist() == [[1.0]]
        assert counts.mean(axis=0) / length == pytest.approx(p[0], abs=0.01)
        q = (p**2).sum()
        pairs = (counts * (counts - 1)).sum(axis=1) / (length * (length - 1))
        assert pairs.mean() == pytest.approx((1 + 20 * q) / 21, abs=5 * pairs.std() / np.sqrt(n))
        assert counts.var(axis=0) == pytest.approx(length * (p * (1 - p))[0] * (length + 20) / 21, rel=0.1)  # DCM's

    def test_correlated_documents_have_correlated_proportions(self):
        """One word a topic, no repeats: counts tell the proportions, whose logarithms have the factors' covariance."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shapes, "_URN", 1e12)
            n, m = 400, 4
            cluster, lengths = np.arange(n) % 2, np.full(n, 5000)
            tau = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7]])
            counts, _ = shapes._draw_correlated(cluster, lengths, tau, np.eye(m), 5)
            loadings = 0.3 * streams.generator(5, "simulated factors").standard_normal((m, 10))
        logs = np.log(counts.toarray() + 0.5)
        logs -= logs.mean(axis=1, keepdims=True)
        within = np.concatenate([logs[cluster == k] - logs[cluster == k].mean(axis=0) for k in range(2)])
        centring = np.eye(m) - 1 / m
        expected = centring @ (loadings @ loadings.T + np.eye(m)) @ centring
        assert np.cov(within.T) == pytest.approx(expected, abs=0.35)  # 5 standard errors of a variance near 1.3
        centres = np.log(tau + 0.01 / m)
        ahead = logs[cluster == 0].mean(axis=0) - logs[cluster == 1].mean(axis=0)
        assert ahead == pytest.approx(centring @ (centres[0] - centres[1]), abs=0.6)

    def test_corpora_are_as_bursty_as_nips(self):
        """Real NIPS has 0.41 distinct words a token; MC2's law 0.66."""
        shape = replace(SHAPES["nips"], n_documents=200)
        share = {law: simulate(shape, 0, drawn_from=law)[0] for law in LAWS}
        distinct = {law: corpus.content.nnz / corpus.n_tokens for law, corpus in share.items()}
        assert 0.36 < distinct["correlated"] < 0.45 < 0.6 < distinct["mc2"]
        assert (share["mc2"].labels == share["correlated"].labels).all()
        assert (share["mc2"].contexts["year"] == share["correlated"].contexts["year"]).all()

    def test_blocks_do_not_hang_on_each_other(self, monkeypatch):
        lengths = np.random.default_rng(0).integers(0, 60, 50)
        monkeypatch.setattr(shapes, "_BLOCK_TOKENS", 300)
        p = np.full((1, 1000), 0.001)
        counts, _ = shapes._draw_correlated(np.zeros(50, dtype=int), lengths, np.ones((1, 1)), p, 7)
        assert np.asarray(counts.sum(axis=1)).ravel().tolist() == lengths.tolist()
        assert len(np.unique(counts[lengths > 20].toarray(), axis=0)) == (lengths > 20).sum()

    def test_another_law_is_refused(self):
        with pytest.raises(ValueError, match="drawn_from is 'lda'; allowed: mc2, correlated"):
            simulate(SHAPES["nips"], 0, drawn_from="lda")


class TestSimulated:
    def test_a_seed_is_a_corpus(self):
        one, truth = simulate(SHAPES["nips"], seed=8, scale=0.05)
        same, same_truth = simulate(SHAPES["nips"], seed=8, scale=0.05)
        other, _ = simulate(SHAPES["nips"], seed=9, scale=0.05)
        assert one.digest == same.digest != other.digest
        assert (truth.word_given_topic == same_truth.word_given_topic).all()
        assert letters.simulate(1)[0].digest == letters.simulate(1)[0].digest != letters.simulate(2)[0].digest

    def test_a_truth_comes_back_from_disk(self, tmp_path):
        _, truth = simulate(SHAPES["nips"], seed=10, scale=0.02)
        truth.save(tmp_path / "truth.npz")
        loaded = Truth.load(tmp_path / "truth.npz")
        assert (loaded.cluster == truth.cluster).all()
        assert (loaded.word_given_topic == truth.word_given_topic).all()
        assert {n: v.tolist() for n, v in loaded.contexts.items()} == {n: v.tolist() for n, v in truth.contexts.items()}
        storage.write_arrays(tmp_path / "other.npz", {"cluster": np.zeros(3)})
        with pytest.raises(ValueError, match=r"other\.npz is not the truth .*'cluster_weights' is missing"):
            Truth.load(tmp_path / "other.npz")

    @pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
    def test_a_wrong_scale_is_refused(self, scale):
        with pytest.raises(ValueError, match="it must be a number above 0"):
            simulate(SHAPES["nips"], seed=0, scale=scale)

    @pytest.mark.parametrize("n", [1, 100, 8100, 20_000])
    def test_names_are_distinct_and_readable(self, n):
        for names in (pseudo_words(n), author_names(n)):
            assert len(set(names)) == len(names) == n
            assert all(4 <= len(name) <= 12 for name in names)


class TestContexts:
    def test_they_tell_of_the_cluster(self):
        corpus, truth = simulate(SHAPES["nips"], seed=4, scale=0.5)
        year, labels = corpus.contexts["year"], corpus.labels
        within = sum(((year[labels == k] - year[labels == k].mean()) ** 2).sum() for k in np.unique(labels))
        assert within < 0.8 * ((year - year.mean()) ** 2).sum()
        k = np.bincount(labels).argmax()
        for name in ("author", "title"):
            own = truth.contexts[name][k]
            favourite = np.argsort(own)[-20:]
            counts = np.asarray(corpus.contexts[name].tocsc()[:, favourite].sum(axis=1)).ravel()
            assert counts[labels == k].mean() > 1.5 * counts[labels != k].mean()

    def test_years_are_normal_and_cut_at_the_ends(self):
        corpus, truth = simulate(SHAPES["nips"], seed=11)
        for k in np.flatnonzero(np.bincount(corpus.labels) > 150):
            mean, sd = truth.contexts["year"][k]
            edges = (np.arange(1987, 2001) - 0.5 - mean) / sd
            expected = np.diff(stats.norm.cdf(edges))
            seen = np.bincount((corpus.contexts["year"][corpus.labels == k] - 1987).astype(int), minlength=13)
            expected *= seen.sum() / expected.sum()
            likely = expected > 5
            assert (
                stats.chisquare(seen[likely], expected[likely] * seen[likely].sum() / expected[likely].sum()).pvalue
                > 1e-6
            )
            assert seen[~likely].sum() < 60

    def test_users_are_free_or_paid(self):
        """UAI16, 5.1; the classes of AUA were its clusters. All users of a cluster are of one class."""
        corpus, truth = simulate(SHAPES["aua"], seed=1, scale=0.0005)
        assert corpus.label_names == ["free", "paid"]
        assert (corpus.labels == 1).mean() == pytest.approx(0.15, abs=0.06)
        assert np.bincount(shapes._classes(np.full(20, 0.05), [0.85, 0.15])).tolist() == [17, 3]
        assert len(np.unique(truth.cluster)) > 10
        for k in np.unique(truth.cluster):
            assert len(np.unique(corpus.labels[truth.cluster == k])) == 1
