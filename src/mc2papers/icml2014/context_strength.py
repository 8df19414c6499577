"""How much contexts gain by how much they tell: operating curves for the claims of ICML14 and UAI16 on contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mc2papers.datasets.origins import ORIGINS
from mc2papers.report.agreement import MEASURES
from mc2papers.report.captions import counted
from mc2papers.report.claims import GAIN, REPRODUCED, Claim, Statistic, judge, mean_of, unmet
from mc2papers.report.extent import extent_of_runs, paper_sizes
from mc2papers.report.tables import number
from mc2papers.targets import Built, Files, Options, Target, options_of

if TYPE_CHECKING:
    from mc2papers.configuration import Configuration

if TYPE_CHECKING:
    from matplotlib.figure import Figure


#: gain by column of the fits: label, and whether it is a change in per cent, for which lower is better
GAINS = {
    "nmi": ("gain in NMI", False),
    "purity": ("gain in purity", False),
    "perplexity": ("change of perplexity, %", True),
    "rand_index": ("gain in Rand index", False),
    "f_score": ("gain in F-score", False),
}
#: those with a panel and in the conclusion
_DRAWN = {name: GAINS[name] for name in ("nmi", "purity", "perplexity")}
_LEVEL = 0.95
#: share of an axis by which the labels of two printed gains are to be apart
_APART = 0.04
#: the method whose curves the conclusion is about
_PAPERS = "MC2"


def gains(fits: pd.DataFrame) -> pd.DataFrame:
    """Average the gain by the context over repeats, with Student's t interval.

    Parameters
    ----------
    fits : of :func:`mc2papers.icml2014.context_strength_fits.gains_of_contexts`

    Returns
    -------
    A row per method, measure (of GAINS) and share: bits, class_bits, gain, least and most (ends of the interval),
    without and with (means of the measure), repeats.
    """
    from scipy import stats

    rows = []
    for method, of_method in fits.groupby("method", sort=False):
        without = of_method[of_method["share"].isna()].set_index("repeat")
        for share, here in of_method.dropna(subset="share").groupby("share"):
            here = here.set_index("repeat")
            for measure in GAINS:
                gain = _gain(here, without, measure)
                n = len(gain)
                reach = stats.t.ppf((1 + _LEVEL) / 2, n - 1) * gain.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
                about = {"method": method, "measure": measure, "share": share, "repeats": n}
                about |= {"bits": here["bits"].mean(), "class_bits": here["class_bits"].mean(), "gain": gain.mean()}
                about |= {"least": gain.mean() - reach, "most": gain.mean() + reach}
                rows.append(about | {"without": without[measure].mean(), "with": here[measure].mean()})
    return pd.DataFrame(rows)


def _gain(here: pd.DataFrame, without: pd.DataFrame, measure: str) -> pd.Series:
    """Gain by repeat, in per cent where it is a change."""
    gain = here[measure] - without[measure]
    return 100 * gain / without[measure] if GAINS[measure][1] else gain


def judge_contexts(
    fits: pd.DataFrame, printed: Mapping[str, float], changes: Mapping[str, float] | None = None
) -> list[Claim]:
    """The papers' claims on what contexts gain, which data with contexts of one strength cannot test.

    They are judged at the strongest context that does not determine the class: a claim that fails there fails at every
    strength, and a claim that holds there is given the bits from which on it holds on average. Sign and size of a gain
    are judged apart.

    Parameters
    ----------
    fits : as for :func:`gains`
    printed : gain in each of MEASURES in ICML14 table 3
    changes : printed change of perplexity in per cent, by target
    """
    all_higher = dict.fromkeys(MEASURES, 0.0)
    said = ", ".join(f"{label} {printed[name]:.3f}" for name, label in MEASURES.items())
    lower, changes = {"perplexity": 100 * GAIN}, changes or {}
    asked = (
        # table, claim, method, least size of the gain
        ("icml2014_table2", "MC2 with tags is below MC2 without tags", "MC2", lower),
        ("icml2014_table3", f"contexts gain as much as printed ({said})", "MC2", printed),
        ("uai2016_table2", "SVI-MC2 with contexts is below SVI-MC2 without", "SVI-MC2", lower),
        ("uai2016_table4", "all four measures higher with 100% of contexts than with none", "SVI-MC2", all_higher),
    )
    dataset, table, claims = ORIGINS["nuswide"].title, gains(fits), []
    share = fits["share"][fits["share"] < 1].max()
    repeats = fits.set_index("repeat")
    for target, text, method, bounds in asked:
        here = table[table["method"] == method]
        at, curves = here[here["share"] == share].set_index("measure"), dict(list(here.groupby("measure")))
        if at.empty:
            claims.append(replace(unmet(dataset, text, f"no fit of {method}"), of=target))
            continue
        leads: list[Statistic] = []
        own = repeats[repeats["method"] == method]
        for name, size in bounds.items():
            label, is_change = GAINS[name]
            gain = _gain(own[own["share"] == share], own[own["share"].isna()], name)
            about: dict[str, Any] = {"below" if is_change else "above": 0.0, "digits": 1 if is_change else 3}
            about |= {"size": size, "claimed": abs(changes.get(target, 0.0)) if is_change else 0.0}
            leads.append(mean_of(label, gain, over="corpora", is_difference=True, **about))
        first = at.iloc[0]
        numbers = f"at {first['bits']:.1f} of {first['class_bits']:.1f} bits " + ", ".join(
            f"perplexity {at.loc[name, 'gain']:+.1f}%"
            + (f", printed {changes[target]:+.1f}%" if target in changes else "")
            if name in lower
            else f"{MEASURES[name]} {at.loc[name, 'gain']:+.3f}"
            for name in bounds
        )
        claim = judge(dataset, text, leads, numbers)
        needed = [bits_needed(curves[name], -size if name in lower else size) for name, size in bounds.items()]
        if claim.verdict == REPRODUCED:
            claim = replace(claim, reason=f"{claim.reason}; on average from {max(needed):.1f} bits on")
        claims.append(replace(claim, of=target))
    return claims


def bits_needed(curve: pd.DataFrame, gain: float) -> float:
    """Return the bits at which a curve first reaches a gain, interpolated; NaN if it never does.

    curve : rows of :func:`gains` of one method and measure; gains of perplexity count as reached below ``gain``
    """
    curve = curve.sort_values("bits")
    sign = -1.0 if gain < 0 else 1.0
    values, bits = sign * curve["gain"].to_numpy(), curve["bits"].to_numpy()
    reached = np.flatnonzero(values >= sign * gain)
    if not len(reached):
        return np.nan
    at = reached[0]
    if at == 0:
        return float(bits[0])
    part = (sign * gain - values[at - 1]) / (values[at] - values[at - 1])
    return float(bits[at - 1] + part * (bits[at] - bits[at - 1]))


def conclude(table: pd.DataFrame, paper: pd.DataFrame) -> str:
    """Draw the conclusion: what a useless context does, and how strong one must be for the printed gains."""
    ours = table[table["method"] == _PAPERS]
    nmi = ours[ours["measure"] == "nmi"].sort_values("bits")
    none, total = nmi.iloc[0], nmi["class_bits"].iloc[0]
    harm = "lowers" if none["most"] < 0 else "raises" if none["least"] > 0 else "neither raises nor lowers"
    gain, least, most = (f"{round(none[name], 3) + 0.0:+.3f}" for name in ("gain", "least", "most"))
    said = (
        f"A context that tells nothing of the classes {harm} the NMI of {_PAPERS} ({gain}, {_LEVEL:.0%} {least} to "
        f"{most})."
    )
    parts = []
    for measure, (_, is_change) in _DRAWN.items():
        curve = ours[ours["measure"] == measure].sort_values("bits")
        printed = paper.loc[paper["measure"] == measure, "gain"]
        name, unit, digits = measure.replace("nmi", "NMI"), "%" if is_change else "", 1 if is_change else 3
        needed = np.array([bits_needed(curve, one) for one in printed])
        reached = printed[~np.isnan(needed)]
        if len(reached):
            parts.append(
                f"the printed gains in {name} ({_range(reached, digits, '+')}{unit}) need {_range(needed, 1)} of "
                f"{total:.1f} bits"
            )
        if len(reached) < len(printed):
            most_gained = curve["gain"].iloc[-1]
            parts.append(
                f"the printed changes of {name} ({_range(printed[np.isnan(needed)], digits, '+')}{unit}) are out of "
                f"reach of a context that determines the class ({most_gained:+.{digits}f}{unit})"
            )
    return f"{said} On these data {'; '.join(parts)}."


def _range(values: Any, digits: int, sign: str = "") -> str:
    """ "0.7 to 2.0"; "0.7" where all are equal."""
    ends = dict.fromkeys(f"{one:{sign}.{digits}f}" for one in (np.nanmin(values), np.nanmax(values)))
    return " to ".join(ends)


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """Format the curves for people, a row per method and strength."""
    rows = []
    for (method, share), here in table.groupby(["method", "share"], sort=False):
        row: dict[str, Any] = {"method": method, "bits": number(here["bits"].iloc[0], 2), "share shown": f"{share:.0%}"}
        for _, one in here.iterrows():
            label, is_change = GAINS[one["measure"]]
            digits = 1 if is_change else 3
            gain, least, most = (f"{one[name]:+.{digits}f}" for name in ("gain", "least", "most"))
            row[label] = f"{gain} ({least} to {most})"
        rows.append(row)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, paper: pd.DataFrame, source: str) -> Figure:
    """Draw a panel per measure: gain and its interval over the bits that the context tells of the class."""
    from mc2papers.report import palette, style

    figure = style.new_figure(7.4, 3.6)
    axes = figure.subplots(1, len(_DRAWN))
    for ax, (measure, (label, _)) in zip(axes, _DRAWN.items(), strict=True):
        for method, curve in table[table["measure"] == measure].groupby("method", sort=False):
            colour, marker = palette.look(str(method).removesuffix("-MC2"))
            curve = curve.sort_values("bits")
            ax.plot(curve["bits"], curve["gain"], color=colour, marker=marker, label=method)
            ax.fill_between(curve["bits"], curve["least"], curve["most"], color=colour, alpha=0.15, linewidth=0)
        ax.axhline(0.0, color=palette.SOFT, linewidth=0.7)
        low, high = ax.get_ylim()
        printed = paper[paper["measure"] == measure].sort_values("gain")
        apart = (printed["gain"].diff() > _APART * (high - min(low, printed["gain"].min()))).cumsum()
        for _, near in printed.groupby(apart):
            for gain in near["gain"]:
                ax.axhline(gain, color="black", linewidth=0.8, linestyle="--")
            places, at = ";\n".join(near["place"]), (0.02, near["gain"].max())
            ax.annotate(places, at, xycoords=("axes fraction", "data"), fontsize=6, va="bottom")
        ax.set(xlabel="bits of context about the class", ylabel=label)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    style.mark_source(figure, source)
    return figure


# -- the contract --------------------------------------------------------------------------------------------------
def _build(files: Files, options: Options) -> Built:
    fits = pd.concat([pd.read_csv(path) for path in files["fits"]])
    table = gains(fits)
    paper = pd.read_csv(files["paper"][0])
    source = f"simulated, {counted(options['study']['repeats'], 'corpus', 'corpora')} in the shape of NUS-WIDE"
    printed = paper.set_index(["place", "measure"])["gain"]
    changes = {
        "icml2014_table2": float(printed["ICML 14, table 2", "perplexity"]),
        "uai2016_table2": float(printed["UAI 16, table 2, MeSH", "perplexity"]),
    }
    claims = judge_contexts(fits, {name: float(printed["ICML 14, table 3", name]) for name in MEASURES}, changes)
    figure = draw(table, paper, source)
    return Built(table, shown=shown(table), figure=figure, conclusion=conclude(table, paper), claims=claims)


def _extent(configuration: Configuration, name: str) -> dict[str, dict[str, Any]]:
    study, paper = configuration.config["context_strength"], paper_sizes()["icml2014", "nuswide"]["documents"]
    drawn = f"{round(study['scale'] * paper):,} of {paper:,}"
    repeats = counted(study["repeats"], "corpus", "corpora")
    found = extent_of_runs(configuration, name)
    return {
        dataset: one | {"documents": drawn, "repeats": repeats, "limits": ["few documents", *one["limits"]]}
        for dataset, one in found.items()
    }


def _caption(options: Options) -> str:
    study = options["study"]
    return (
        "Gain by a context of six values per document over no context, against the bits that it tells of the class of "
        "the document, from none to all. Means and 95% intervals of "
        f"{study['repeats']} simulated corpora in the shape of NUS-WIDE ({study['scale']} of its size). Dashed: gains "
        "that ICML 2014 and UAI 2016 print, of other data."
    )


TARGET = Target(
    title="Contexts: gain over how much a context tells of the classes",
    shows="gain by contexts",
    build=_build,
    caption=_caption,
    inputs={"fits": "context strength"},
    datasets=("nuswide",),
    options=options_of(study="context_strength"),
    extent=_extent,
    notes=(
        "bits: mutual information of context and class as drawn; the largest is the entropy of the class. The words of "
        "a document are drawn from none of the compared models. Gain: with the context less without, paired by corpus, "
        "with its 95% interval (Student's t). Perplexity is of the words of held-out documents, scored without their "
        "contexts.",
        "Claims on the gain by contexts are judged at the strongest context that does not determine the class. What "
        "fails there fails at every strength.",
    ),
    has_paper=True,
    has_claims=True,
    is_study=True,
)
