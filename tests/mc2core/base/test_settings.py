"""Settings of models and engines by the names of their constructors' arguments."""

import inspect

import pytest

from mc2core import inference, models
from mc2core.app.fit_command import _family
from mc2core.base.settings import parse_settings, split_settings


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        (inference.Gibbs, "start_topic", "Gibbs has no setting 'start_topic'; did you mean 'start_topics'?"),
        (inference.SVI, "thread", "SVI has no setting 'thread'; did you mean 'threads'?"),
        (inference.FastEx, "propsal", "FastEx has no setting 'propsal'; did you mean 'proposal'?"),
        (models.MC2, "document_levels", "MC2 has no setting 'document_levels'; did you mean 'document_level'?"),
        (models.HDP, "topics_prior", "HDP has no setting 'topics_prior'; did you mean 'topic_word_prior'?"),
        (models.NPTOT, "context", "NPTOT has no setting 'context'; did you mean 'contexts'?"),
        (models.Mixture, "n_cluster", "Mixture has no setting 'n_cluster'; did you mean 'n_clusters'?"),
    ],
)
def test_a_misspelt_setting_is_refused_with_the_nearest_name(kind, wrong, said):
    with pytest.raises(TypeError) as caught:
        kind(**{wrong: 3})
    assert str(caught.value) == said
    with pytest.raises(TypeError, match="positional"):
        kind(1)


@pytest.mark.parametrize("kind", [inference.Gibbs, models.Mixture])
def test_where_nothing_is_near_all_settings_are_named(kind):
    with pytest.raises(TypeError, match=f"has no setting 'q'; known: {', '.join(inspect.signature(kind).parameters)}$"):
        kind(q=1)


def test_a_value_may_hold_the_sign_between_settings():
    both = {"exact_sweeps": [1, 5], "kernel": "a b", "n": 0.01}
    assert parse_settings(split_settings("exact_sweeps=[1, 5]  kernel=a b n=1e-2 "), "x") == both
    assert parse_settings(["exact_sweeps=[1, 5]", "kernel= a b", "n=1e-2"], "--set") == both
    assert parse_settings(["spark.executor.extraJavaOptions=-Da=1 -Db=2"], "--set").popitem()[1] == "-Da=1 -Db=2"
    assert split_settings("") == []


def test_a_family_may_have_a_list():
    assert _family("vector:gauss,mean=[0, 1],strength=0.5") == (
        "vector",
        {"family": "gauss", "mean": [0, 1], "strength": 0.5},
    )
