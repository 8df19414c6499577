"""Parameters of tests that try several choices with each other."""

import itertools

import pytest


def crossed(*axes):
    """All combinations of the choices on two or more axes; most of them are thorough.

    By default one in as many combinations is tried as the shortest axis has choices. With two axes these have every
    choice of both, with three every pair of choices too. An axis is a list, or a mapping from names in the test's id; a
    tuple on it stands for several parameters.
    """
    named = [list(axis.items()) if isinstance(axis, dict) else [(str(one), one) for one in axis] for axis in axes]
    shortest = min(map(len, named))
    parameters = []
    for places in itertools.product(*(range(len(axis)) for axis in named)):
        chosen = [axis[place] for axis, place in zip(named, places, strict=True)]
        values = [part for _, value in chosen for part in (value if isinstance(value, tuple) else (value,))]
        marks = () if sum(places) % shortest == 0 else pytest.mark.thorough
        parameters.append(pytest.param(*values, id="-".join(name for name, _ in chosen), marks=marks))
    return parameters
