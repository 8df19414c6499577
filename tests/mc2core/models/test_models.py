"""What a model is told, what an engine fits, and how both are made from names and plain settings."""

import inspect
import itertools
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

from mc2core import Corpus, Posterior
from mc2core.families import DirichletCategorical, GammaPoisson, NormalGamma
from mc2core.inference import SVI, FastEx, Gibbs
from mc2core.inference.registry import ENGINES, MODELS, engine_class, model_class, settings_of, specify, takes_contexts
from mc2core.inference.running.loop import fit
from mc2core.models import HDP, MC2, NPTOT, Mixture

YEAR = {"year": NormalGamma()}
#: each with arguments other than its defaults
MODELS_MADE = [
    MC2(),
    MC2(document_level=False, contexts={"year": NormalGamma(b0=2.0), "tag": None}, topic_concentration=1),
    MC2(document_concentration=3, concentration_priors={"group": (2, 3)}, topic_word_prior=0.5),
    MC2(n_clusters=8, concentration_priors={"document": (4.0, 5.0)}),
    MC2(n_clusters=3, group_concentration=0.5, table_concentration=2, document_level=False),
    HDP(),
    HDP(document_level=True, document_concentration=0.5, topic_word_prior="learn"),
    NPTOT(contexts=["year"]),
    NPTOT(contexts={"year": NormalGamma(mu0=1.0)}, table_concentration=3),
    Mixture(),
    Mixture(n_clusters=7, component="poisson", topic_word_prior=0.1, weight_prior=2.0, rate_prior=3.0),
]
ENGINES_MADE = [
    Gibbs(),
    Gibbs(kernel="collapsed", start_topics=3, start_clusters=2, threads=2),
    SVI(),
    SVI(max_clusters=3, max_tables=2, max_topics=4, batch_size=5, schedule="paper", learning_offset=1.0),
    SVI(initialisation="random"),
    FastEx(),
    FastEx(bits=32, projection="paper", proposal="hash", inverse_temperature=0.5, failure_probability=0.1),
    FastEx(proposal="neighbours", exact_sweeps=[2, 3], n_proposals=2),
]
#: an engine of each kind that fits any model of its kinds without a document level
PLAIN = {"gibbs": {"kernel": "collapsed"}, "svi": {"max_clusters": 2, "max_topics": 3}, "fastex": {"proposal": "exact"}}


def plain_engine(model):
    """A name of an engine that fits the model, and its settings."""
    name = next(name for name in ENGINES if isinstance(model, engine_class(name).models))
    return name, PLAIN[name]


# -- settings --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("model", MODELS_MADE, ids=repr)
def test_a_model_is_made_again_from_what_it_was_told(model):
    settings = json.loads(json.dumps(model.settings()))
    assert set(settings) == set(inspect.signature(type(model)).parameters)
    contexts = settings.pop("contexts", None)
    engine, of_engine = plain_engine(model)
    again, _ = specify(model.name, engine, settings | of_engine, contexts)
    assert type(again) is type(model)
    assert again.settings() == model.settings()
    assert vars(again).keys() == vars(model).keys()
    assert repr(again) == repr(model)


@pytest.mark.parametrize("engine", ENGINES_MADE, ids=repr)
def test_an_engine_is_made_again_from_what_it_was_told(engine):
    settings = json.loads(json.dumps(engine.settings()))
    assert set(settings) == set(inspect.signature(type(engine)).parameters) - set(engine.excluded)
    of_model = {} if engine.name == "fastex" else {"document_level": False}
    _, again = specify(None, engine.name, settings | of_model, threads=engine.threads)
    assert type(again) is type(engine)
    assert (again.settings(), again.threads) == (engine.settings(), engine.threads)


def test_settings_hold_what_was_told():
    contexts = {"year": NormalGamma(b0=2.0, strength=0.5), "tag": None}
    priors = {"table": (2, 3)}
    told = MC2(document_level=False, contexts=contexts, topic_concentration=2, concentration_priors=priors)
    year = {"family": "normal_gamma", "mu0": 0.0, "kappa0": 1.0, "a0": 1.0, "b0": 2.0, "strength": 0.5}
    assert told.settings() == MC2().settings() | {
        "document_level": False,
        "contexts": {"year": year, "tag": None},
        "topic_concentration": 2.0,
        "concentration_priors": {"group": [1.0, 1.0], "table": [2.0, 3.0], "topic": [1.0, 1.0]},
    }
    poisson = {"component": "poisson", "rate_prior": 3.0}
    assert Mixture(component="poisson", rate_prior=3).settings() == Mixture().settings() | poisson


def test_what_is_as_usual_is_not_shown():
    usual = [repr(one) for one in (MC2(), HDP(), Mixture(), Gibbs(), SVI(), FastEx())]
    assert usual == ["MC2()", "HDP()", "Mixture()", "Gibbs()", "SVI()", "FastEx()"]
    assert repr(MC2(document_level=False)) == "MC2(document_level=False)"
    assert repr(MC2(n_clusters=8, contexts=["year"])) == "MC2(n_clusters=8, contexts={'year': None})"
    assert repr(NPTOT(contexts=["year"])) == "NPTOT(contexts={'year': None})"
    assert repr(Gibbs(kernel="collapsed", threads=3)) == "Gibbs(kernel='collapsed')"


def test_settings_of_models_and_engines_have_different_names():
    """Both stand on one line of a sheet or a command."""
    n_pairs = 0
    for engine in map(engine_class, ENGINES):
        for model in engine.models:
            assert not set(inspect.signature(model).parameters) & set(inspect.signature(engine).parameters)
            n_pairs += 1
    assert n_pairs == 5


@pytest.mark.parametrize(
    ("model", "engine", "settings", "contexts", "message"),
    [
        ("mc3", None, {}, None, "model is 'mc3'; allowed: hdp, mc2, mixture, nptot; did you mean 'mc2'?"),
        (None, "gibs", {}, None, "engine is 'gibs'; allowed: fastex, gibbs, svi; did you mean 'gibbs'?"),
        (None, None, {"kernle": 1}, None, "mc2 with gibbs has no setting 'kernle'; did you mean 'kernel'?"),
        (None, None, {"topic_prio": 1}, None,
         "mc2 with gibbs has no setting 'topic_prio'; did you mean 'topic_word_prior'?"),
        (None, "svi", {"kernel": "blocked"}, None, "mc2 with svi has no setting 'kernel'"),
        (None, None, {"threads": 2}, None, "mc2 with gibbs has no setting 'threads'"),
        (None, None, {"contexts": YEAR}, None, "mc2 with gibbs has no setting 'contexts'"),
        ("hdp", None, {"group_concentration": 1.0}, None, "hdp with gibbs has no setting 'group_concentration'"),
        ("hdp", None, {}, ["year"], "model 'hdp' uses words only; it cannot use context 'year'"),
        ("mixture", None, {}, {"year": None}, "model 'mixture' uses words only; it cannot use context 'year'"),
        (None, None, {"document_level": False, "document_concentration": 3}, None,
         "document_concentration needs document_level=True (--set document_level=true)"),
    ],
)  # fmt: skip
def test_what_names_and_settings_cannot_make_is_refused(model, engine, settings, contexts, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        specify(model, engine, settings, contexts)
    assert "\n" not in str(caught.value)


def test_with_n_clusters_set_their_concentration_is_held():
    told = MC2(n_clusters=8)
    assert (MC2().n_clusters, MC2().group_concentration, MC2().most_clusters) == (None, "learn", np.inf)
    assert (told.n_clusters, told.group_concentration, told.most_clusters) == (8, 80.0, 8)
    assert [MC2(n_clusters=n).group_concentration for n in (1, 10, 152, 2**31 - 1)] == [10.0, 100.0, 100.0, 100.0]
    assert MC2(n_clusters=8, group_concentration=2).group_concentration == 2.0
    assert list(told.concentration_priors) == ["table", "topic"]
    assert told.describe().startswith("MC2 of 8 clusters with a document level")
    assert MC2(n_clusters=1).describe().startswith("MC2 of 1 cluster with")
    assert MC2(n_clusters=8, document_level=False).describe().startswith("MC2 of 8 clusters, the documents of")
    for given, message in (
        ({"n_clusters": 0}, "n_clusters is 0; it must be a whole number of at least 1 and at most 2147483647"),
        ({"n_clusters": 2.5}, "n_clusters is 2.5; it must be a whole number"),
        ({"n_clusters": 3, "group_concentration": "learn"}, "group_concentration is 'learn'; with n_clusters it must"),
        ({"n_clusters": 3, "concentration_priors": {"group": (1, 1)}}, "concentration_priors is 'group'; allowed: "),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            MC2(**given)


# -- which engine fits which model -----------------------------------------------------------------------------------
PRINTED, PARALLEL = MC2(document_level=False), Gibbs(kernel="parallel")
NOT_BLOCKED = "kernel is 'blocked'; with a document level it must be 'collapsed', "
FOR_NPTOT = "for npTOT it must be 'collapsed'"
FITS = {("mc2", "gibbs"), ("hdp", "gibbs"), ("nptot", "gibbs"), ("mc2", "svi"), ("mixture", "fastex")}


@pytest.mark.parametrize(("model", "engine"), list(itertools.product(MODELS, ENGINES)))
def test_an_engine_fits_its_models_and_refuses_all_others(model, engine):
    contexts = ["year"] if model == "nptot" else None
    of_model = {"document_level": False} if model == "mc2" else {}
    made = model_class(model)(**of_model, **({"contexts": contexts} if contexts else {}))
    one = engine_class(engine)(**PLAIN[engine])
    if (model, engine) in FITS:
        assert one.supports(made) is None
        specify(model, engine, of_model | PLAIN[engine], contexts)
        return
    able = {"Gibbs": "mc2, hdp, nptot", "SVI": "mc2", "FastEx": "mixture"}[type(one).__name__]
    sentence = f"{type(one).__name__} cannot fit {model}; it fits {able}"
    corpus = Corpus(np.eye(3, dtype=int), contexts={"year": [1.0, 2.0, 3.0]})
    for refused in (
        lambda: one.supports(made),
        lambda: fit(corpus, made, one, progress=False),
        lambda: specify(model, engine, {}, contexts),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
            refused()


@pytest.mark.parametrize(
    ("model", "engine", "message"),
    [
        (MC2(), Gibbs(kernel="blocked"), NOT_BLOCKED),
        (HDP(document_level=True), Gibbs(kernel="blocked"), NOT_BLOCKED),
        (NPTOT(contexts=YEAR), Gibbs(kernel="blocked"), f"kernel is 'blocked'; {FOR_NPTOT}"),
        (NPTOT(contexts=YEAR), Gibbs(kernel="interleaved"), f"kernel is 'interleaved'; {FOR_NPTOT}"),
        (NPTOT(contexts=YEAR), PARALLEL, "kernel is 'parallel', which needs a document level"),
        (PRINTED, PARALLEL, "kernel is 'parallel', which needs a document level; without it, use 'blocked'"),
        (MC2(n_clusters=4), SVI(max_clusters=9), "max_clusters is 9; with n_clusters, here 4, it must be None"),
        (MC2(n_clusters=4), SVI(max_tables=3), "max_tables is 3; with n_clusters it must be None"),
        (MC2(), SVI(max_tables=3), "max_tables needs document_level=False (--set document_level=false)"),
        (MC2(), SVI(n_shards=2), "n_shards needs document_level=False (--set document_level=false)"),
        (
            MC2(document_level=False, topic_word_prior="learn"), SVI(max_tables=3),
            "topic_word_prior='learn' needs max_tables None; max_tables is 3",
        ),
        (
            Mixture(component="poisson"), FastEx(proposal="neighbours"),
            "proposal='neighbours' needs component='multinomial', not 'poisson'",
        ),
        (Mixture(component="gauss_wishart"), FastEx(proposal="hash"), "component='gauss_wishart' needs proposal="),
    ],
)  # fmt: skip
def test_model_and_engine_settings_that_disagree_are_refused(model, engine, message):
    corpus = Corpus(np.eye(3, dtype=int), contexts={"year": [1.0, 2.0, 3.0]})
    settings = model.settings() | engine.settings()
    contexts = settings.pop("contexts", None)
    for refused in (
        lambda: engine.supports(model),
        lambda: fit(corpus, model, engine, progress=False),
        lambda: specify(model.name, engine.name, settings, contexts),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
            refused()
        assert "\n" not in str(caught.value)


# -- contexts --------------------------------------------------------------------------------------------------------
COUNTS = np.array([[2, 1, 0], [1, 2, 0], [0, 1, 3], [0, 0, 4]])
CORPUS = Corpus(
    COUNTS, contexts={"year": [0.5, -1.0, np.nan, 2.0], "tag": sp.csr_matrix(COUNTS[:, :2]), "visits": [1.0, 0, 2, 3]}
)


@pytest.mark.parametrize("contexts", [["year", "tag"], ("year", "tag"), {"year": None, "tag": None}], ids=repr)
@pytest.mark.parametrize(
    "engine", [Gibbs(kernel="collapsed", start_topics=2), SVI(max_clusters=2, max_topics=2)], ids=repr
)
def test_contexts_without_a_family_take_that_of_their_kind(contexts, engine):
    """Numbers NormalGamma, counts DirichletCategorical: the bits of a fit that names them."""
    model = MC2(document_level=False, contexts=contexts)
    assert model.settings()["contexts"] == {"year": None, "tag": None}
    by_kind = fit(CORPUS, model, engine, iterations=2, progress=False)
    families = {"year": NormalGamma(), "tag": DirichletCategorical()}
    named = fit(CORPUS, MC2(document_level=False, contexts=families), engine, iterations=2, progress=False)
    assert by_kind.posterior.families == named.posterior.families == families
    assert by_kind.provenance["model"] == named.provenance["model"]
    for name, array in named.state.arrays().items():
        np.testing.assert_array_equal(by_kind.state.arrays()[name], array, err_msg=name)
    assert model.settings()["contexts"] == {"year": None, "tag": None}  # the model itself stays as it was made


def test_a_family_that_is_named_stays():
    told = {"visits": GammaPoisson(2.0), "year": None, "tag": {"family": "dirichlet", "concentration": 0.2}}
    found = MC2(contexts=told).for_corpus(CORPUS).contexts
    assert found == {"visits": GammaPoisson(2.0), "year": NormalGamma(), "tag": DirichletCategorical(0.2)}
    with pytest.raises(ValueError, match=r"^the corpus has no context 'month'; it has: year, tag, visits$"):
        MC2(contexts=["month"]).for_corpus(CORPUS)
    assert MC2().for_corpus(CORPUS).contexts == {}


@pytest.mark.parametrize("kind", [HDP, Mixture])
def test_models_of_words_take_no_contexts(kind):
    assert not takes_contexts(kind.name)
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no setting 'contexts'"):
        kind(contexts=["year"])
    assert "contexts" not in kind().settings()
    assert kind().for_corpus(CORPUS).cluster_contexts == {}


@pytest.mark.parametrize(
    ("contexts", "holds"),
    [
        (None, "none"),
        ([], "none"),
        (["year", "visits"], "'year' (no family), 'visits' (no family)"),
        (YEAR | {"month": NormalGamma()}, "'year' (normal_gamma), 'month' (normal_gamma)"),
        ({"tag": DirichletCategorical()}, "'tag' (dirichlet)"),
        ({"visits": GammaPoisson()}, "'visits' (gamma_poisson)"),
    ],
)
def test_nptot_wants_exactly_one_number(contexts, holds):
    sentence = f"npTOT takes exactly one context, of the family normal_gamma, but contexts holds {holds}"
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        NPTOT(contexts=contexts)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        specify("nptot", "gibbs", {"kernel": "collapsed"}, contexts)


def test_nptot_wants_the_whole_strength():
    with pytest.raises(ValueError, match="npTOT needs a context with strength 1, but 'year' has NormalGamma"):
        NPTOT(contexts={"year": NormalGamma(strength=0.5)})


def test_nptot_refuses_counts_where_the_corpus_shows_them():
    why = r"exactly one context, .*normal_gamma, but contexts holds 'tag' \(dirichlet\)"
    with pytest.raises(ValueError, match=why):
        fit(CORPUS, NPTOT(contexts=["tag"]), Gibbs(kernel="collapsed"), progress=False)
    with pytest.raises(TypeError, match="contexts"):
        NPTOT()


# -- what a fit keeps of both ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("model", "engine"),
    [
        (MC2(contexts=["year"], topic_word_prior=0.5), Gibbs(start_topics=3)),
        (HDP(table_concentration=2.0), Gibbs(kernel="blocked", start_topics=3)),
        (NPTOT(contexts=["year"]), Gibbs(kernel="collapsed", start_topics=3)),
        (MC2(document_level=False), SVI(max_clusters=2, max_topics=2)),
        (Mixture(n_clusters=2), FastEx(proposal="exact")),
    ],
    ids=repr,
)
def test_provenance_state_and_posterior_keep_model_and_engine(model, engine, tmp_path):
    done = fit(CORPUS, model, engine, iterations=2, progress=False)
    known = model.for_corpus(CORPUS)
    about = {"model": {"name": model.name, **known.settings()}, "engine": {"name": engine.name, **engine.settings()}}
    assert {part: done.provenance[part] for part in about} == about
    assert done.state.model.settings() == known.settings()
    done.posterior.save(tmp_path / "posterior.npz")
    kept = Posterior.load(tmp_path / "posterior.npz").provenance
    assert {part: kept[part] for part in about} == json.loads(json.dumps(about))
    # both can be made again from what is kept
    told, way = ({name: one for name, one in kept[part].items() if name != "name"} for part in about)
    contexts = told.pop("contexts", None)
    again = specify(kept["model"]["name"], kept["engine"]["name"], told | way, contexts)
    assert [one.settings() for one in again] == [known.settings(), engine.settings()]


def test_settings_of_a_pair_are_those_of_both_with_defaults():
    both = settings_of("mc2", "gibbs")
    assert not {"contexts", "threads"} & set(both)
    assert (both["document_level"], both["kernel"], both["start_clusters"]) == (True, "interleaved", None)
    assert set(both) == (set(MC2().settings()) | set(Gibbs().settings()) | {"n_shards"}) - {"contexts"}
