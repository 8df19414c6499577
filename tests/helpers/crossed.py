"""Parameters of tests of which some are tried by default, and the others are slow."""

import itertools

import pytest


def crossed(*axes, every=1):
    """All combinations of the choices on two or more axes; most of them are slow.

    By default one in as many combinations is tried as the shortest axis has choices. With two axes these have every
    choice of both, with three every pair of choices too. With ``every`` they are so many times fewer, and all choices
    of the shortest axis still occur. An axis is a list, or a mapping from names in the test's id; a
    tuple on it stands for several parameters.
    """
    named = [list(axis.items()) if isinstance(axis, dict) else [(str(one), one) for one in axis] for axis in axes]
    shortest = min(map(len, named))
    parameters = []
    for places in itertools.product(*(range(len(axis)) for axis in named)):
        chosen = [axis[place] for axis, place in zip(named, places, strict=True)]
        values = [part for _, value in chosen for part in (value if isinstance(value, tuple) else (value,))]
        marks = () if sum(places) % (every * shortest) == 0 else pytest.mark.slow
        parameters.append(pytest.param(*values, id="-".join(name for name, _ in chosen), marks=marks))
    return parameters


def first(choices, number=1):
    """The choices, a tuple for several parameters; all but the first ``number`` of them are slow."""
    parameters = []
    for place, one in enumerate(choices):
        if not hasattr(one, "marks"):
            one = pytest.param(*(one if isinstance(one, tuple) else (one,)))
        parameters.append(one if place < number else pytest.param(*one.values, id=one.id, marks=pytest.mark.slow))
    return parameters
