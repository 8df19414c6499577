"""The recommended model and engine for each goal, on one screen (public name: ``mc2core.guide``)."""

from __future__ import annotations

from mc2core.base import pages

_STEPS = """\
corpus    Corpus.from_texts, Corpus.from_dataframe; mc2 import
fit       mc2core.fit(corpus, model, engine); mc2 fit
look      fit.clusters(), fit.topics(), fit.documents(), mc2core.plots; mc2 describe
certainty mc2core.fit(..., chains=4), plots.agreement(fit); mc2 fit --chains 4
new       Corpus.from_texts(new, like=fit.posterior), fit.posterior.predict; mc2 import --like
report    fit.methods()
"""


def guide() -> None:
    """Print a list of goals with the first call for each goal, and the steps of an analysis.

    See Also
    --------
    mc2core.fit : fits a model.

    Examples
    --------
    >>> import mc2core
    >>> mc2core.guide()  # doctest: +ELLIPSIS
    If your goal is ...
    ...
    """
    print("If your goal is ...")
    for goal, _, _, call in goals():
        print(f"  {goal}\n      {call.strip('`')}")
    print(f"\nModels are in mc2core.models, engines in mc2core.inference.\n\n{_STEPS}", end="")


def table() -> str:
    """Return the goals with the recommended model and engine and the first call, as a Markdown table."""
    return pages.asset("mc2core.explore", "goals.md").rstrip()


def goals() -> list[list[str]]:
    """Return the cells of :func:`table`: goal, model, engine and first call, with backquotes around code."""
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table().splitlines()[2:]]
