"""The recommended model and engine for each goal, on one screen (public name: ``mc2core.guide``)."""

from __future__ import annotations

#: goal, model, engine, first call, in backquotes as in docs/how_to/choosing_model.md
GOALS = (
    ("clusters and topics", "`MC2()` (default)", "`Gibbs()` (default)", "`mc2core.fit(corpus)`"),
    (
        "clusters and topics of more than 100,000 documents, or of documents that keep arriving",
        "`MC2()`",
        "`SVI()`",
        "`mc2core.fit(corpus, MC2(), SVI())`",
    ),
    ("a fixed number of clusters", "`MC2(n_clusters=10)`", "`Gibbs()`", "`mc2core.fit(corpus, MC2(n_clusters=10))`"),
    (
        "the model of the papers",
        "`MC2(document_level=False)`",
        "`Gibbs()`",
        "`mc2core.fit(corpus, MC2(document_level=False))`",
    ),
    (
        "thousands of clusters of short texts, without topics",
        "`Mixture(n_clusters=1000)`",
        "`FastEx()`",
        "`mc2core.fit(corpus, Mixture(n_clusters=1000))`",
    ),
    ("topics only", "`HDP()`", "`Gibbs()`", "`mc2core.fit(corpus, HDP())`"),
    (
        "topics that depend on one context, such as the year (npTOT)",
        "`NPTOT(...)`",
        "`Gibbs()`",
        '`mc2core.fit(corpus, NPTOT(contexts=["year"]))`',
    ),
    (
        "clusters of documents that consist of numbers instead of words",
        "`MC2()`",
        "`Gibbs()`",
        "`Corpus.from_observations(values, document)`",
    ),
)

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
    for goal, _, _, call in GOALS:
        print(f"  {goal}\n      {call.strip('`')}")
    print(f"\nModels are in mc2core.models, engines in mc2core.inference.\n\n{_STEPS}", end="")


def table() -> str:
    """Return :data:`GOALS` as a Markdown table."""
    head = ["| goal | model | engine | first call |", "|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(row)} |" for row in GOALS)])
