"""The manifest of what the papers say is complete, names what is there, and is what captions and docs say."""

import importlib.util
import re

import pytest
from helpers.configurations import default_configuration, experiments
from helpers.fits import FIXED
from helpers.paths import ROOT

from mc2core.inference.registry import settings_of
from mc2papers import configuration, targets
from mc2papers.report import fidelity

ENTRIES = fidelity.entries()
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.M)
}


def test_every_entry_names_what_is_there():
    for one in ENTRIES:
        assert one.status in fidelity.STATUSES, one
        assert [name for name in one.module if importlib.util.find_spec(name) is None] == [], one
        assert set(one.test) <= TESTS, (one.element, set(one.test) - TESTS)
        assert set(one.target) <= set(targets.registry()), one
        assert one.test or one.status == fidelity.OMITTED, one
        assert one.module or one.test or one.status == fidelity.OMITTED, one
    keys = [(one.paper, one.place, one.element) for one in ENTRIES]
    assert len(set(keys)) == len(keys) > 100


def test_whatever_is_not_as_printed_is_told_in_one_sentence():
    for one in ENTRIES:
        assert bool(one.departure) == (one.status != fidelity.AS_PRINTED), one
        if one.departure:
            assert re.fullmatch(r"[A-Zn0-9][^.]*(\.\S[^.]*)*\.", one.departure), one.departure
        assert not one.settings or (one.departure and one.target), one


def test_every_table_and_figure_and_every_slip_has_an_entry():
    named = {target for one in ENTRIES for target in one.target}
    of_papers = {name: one for name, one in targets.registry().items() if one.paper not in targets.NO_PAPER}
    assert named == {name for name, one in of_papers.items() if not one.is_study}
    papers = {}
    for one in ENTRIES:
        if one.status == fidelity.CORRECTED:
            papers.setdefault(one.paper, set()).update(one.test)
    page = (ROOT / "docs/papers/slips.md").read_text(encoding="utf-8")
    slips = re.findall(r"^\| (ICML14|UAI16|NIPS12) \|.*\| ([^|]*) \|$", page, re.M)
    assert len(slips) > 12
    for paper, settled in slips:
        assert set(re.findall(r"`(test_\w+)`", settled)) & papers[paper], (paper, settled)


def test_captions_and_notes_say_what_departs():
    for name, target in targets.registry().items():
        said = fidelity.departures(name)
        assert said == "" or said.startswith("Departures from the paper: ")
        assert (said != "" and said in target.notes) == (said != "" and target.is_table), name
        # each sentence stands alone there, without the element of its entry
        for one in ENTRIES:
            if name in one.target:
                assert not re.search(r"^(It|They|Separated) |^How \w+ the paper| it;| neither;", one.departure), one
    assert (
        re.fullmatch(r".*: [2-9], listed in (.*)\.", fidelity.departures("icml2014_figure4"))[1]
        == "docs/papers/fidelity.md"
    )
    figure = targets.registry()["icml2014_figure4"]
    caption = figure.caption({"figure4": {"word": None}, "corpus": {"source": "simulated"}})
    assert caption.endswith("\n\n" + fidelity.departures("icml2014_figure4"))  # a paragraph of its own
    assert fidelity.departures("labelled_table1") == ""


def test_docs_have_the_counts_of_the_manifest():
    """``python -m mc2papers.report.fidelity docs`` makes them."""
    page = (ROOT / "docs/papers/fidelity.md").read_text(encoding="utf-8")
    assert fidelity.with_counts(page) == page
    assert sum(map(int, re.findall(r"^- \*\*.*\*\* \((\d+)\)", page, re.M))) == len(ENTRIES)
    with pytest.raises(ValueError, match=r"the document lacks the lines '<!-- counts: .*' and '<!-- end of"):
        fidelity.with_counts("# Fidelity\n")


UAI16 = {
    "document_level": False, "max_clusters": None, "max_tables": 20, "max_topics": None,  # 40 and 120 with tables
    "schedule": "paper", "learning_offset": None, "learning_decay": None, "global_step": "joint",
    **FIXED,
    "topic_word_prior": 0.01,
}  # fmt: skip


def printed_settings(run, target):
    """What its paper prints of a row under the name of its method, for one of its targets."""
    method, fit = run["method"], run["fit"]
    if method == "SVI-MC2":
        is_large = run["dataset"] in ("wikipedia", "pubmed", "aua") or target in ("uai2016_table3", "uai2016_table4")
        return UAI16 | {"batch_size": 500 if is_large else 50}
    if method in ("MC2", "HDP", "npTOT") and fit["engine"] == "gibbs":
        if target == "uai2016_figure3":
            return {"kernel": "collapsed", "iterations": 1500, "burn_in": 100}
        length = {"iterations": 100} if run["dataset"] == "letters" else {"iterations": 600, "burn_in": 100}
        return {"kernel": "collapsed"} | length
    if method == "FastEx":
        bits = {} if target == "nips2012_figure1" else {"bits": 32}
        hashed = {"proposal": "hash", "projection": "paper", "failure_probability": 0.0001, "documents_per_round": 1}
        return hashed | bits
    return {}


def test_rows_depart_from_printed_settings_only_by_an_entry():
    runs = experiments(default_configuration())
    allowed = {(target, name) for one in ENTRIES for target in one.target for name in one.settings}
    found = set()
    studies = {name for name, one in targets.registry().items() if one.is_study}
    for name, run in runs.items():
        fit = run["fit"]
        if fit["engine"] not in configuration.ENGINES:
            continue
        has = settings_of(fit["model"], configuration.engine_of(fit["engine"])) | fit["settings"]
        has |= {key: fit[key] for key in ("iterations", "burn_in")}
        for target in set(run["targets"]) - studies - {"fits", "icml2014_figure7"}:
            if target.partition("_")[0] in targets.NO_PAPER:
                continue
            printed = printed_settings(run, target)
            departing = {(target, key) for key, value in printed.items() if has[key] != value}
            assert departing <= allowed, (name, departing - allowed)
            found |= departing
    assert found == allowed  # and no entry excuses what is as printed


def test_the_papers_configuration_has_the_printed_sizes():
    """config/paper.yaml: sweeps, burn-in, repeats and whole corpora; what it scales down it says in a comment."""
    whole = configuration.read_yaml(ROOT / "config/paper.yaml")
    lengths = {name: (one["iterations"], one["burn_in"]) for name, one in whole["fit"].items() if "burn_in" in one}
    assert lengths == dict.fromkeys(("nips", "pnas", "nuswide"), (600, 100))
    assert whole["figure7"]["repeats"] == 20
    assert whole["curves"]["parallel_threads"] == 16
    assert "running_time" not in whole
    assert configuration.read_yaml(ROOT / "config/config.yaml")["running_time"]["batch_sizes"] == [500, 1000]
    whole_ones = dict.fromkeys(("pnas", "nuswide", "wikipedia", "pubmed", "aua", "w100"), 1.0)
    assert {name: one.get("scale") for name, one in whole["corpora"].items()} == {
        "nips": None, **whole_ones, "w1000": 0.5,
    }  # fmt: skip
    uai2016 = configuration.read_yaml(ROOT / "config/uai2016.yaml")["fit"]
    assert {(one["iterations"], one["burn_in"]) for one in uai2016.values()} == {(1500, 100)}
