"""Captions and notes of every target under the default configuration: whole sentences, and names as they are
written."""

import re

import pytest
from helpers.configurations import default_configuration, experiments

from mc2papers import configuration, targets

#: all that is written in capitals; the datasets of these are called so
CAPITALS = {
    *("NIPS", "PNAS", "NUS", "WIDE", "AUA", "W100", "W1000", "UIUC", "SYNERGY", "CLINC150"),
    *("MC2", "SVI", "HDP", "LDA", "LSA", "NMF", "GSDMM", "AP", "SIFT", "VI", "EM", "NMI", "ARI", "KL"),
    *("ICML", "UAI", "UAI16", "CSV", "CPU", "L1", "PATH", "SNE"),
}
#: with these a sentence begins, or a name that follows a comma or a bracket
BEGINS = (
    r"(?:A|An|At|Below|Beside|Bars|Both|Compare|Fits|It|Left|Lines|Mean|On|Ours|Paper|Points|Right|Seconds|The|They)"
)
SPARK = {"Spark": True, "no Spark": False}


def the_configuration(**changes):
    config = default_configuration(**changes)
    return configuration.Configuration(config, list(config["corpora"]), experiments(config))


@pytest.fixture(scope="module", params=SPARK)
def said(request):
    """(name, text) of every caption and note, where Spark is and where it is not."""
    whole, has_spark = the_configuration(), SPARK[request.param]
    found = []
    for name, target in targets.registry().items():
        options = target.options(whole, name)
        if "has_spark" in options:
            options |= {"has_spark": has_spark} | ({} if has_spark or "lda" not in options else {"lda": None})
        found.append((name, target.caption(options)))
        found += [(name, note) for note in target.notes]
    assert len(found) > 40
    return found


def test_every_sentence_ends_with_a_full_stop(said):
    for name, text in said:
        assert text.endswith("."), (name, text)
        runs_on = re.search(rf"[\w)\]'\"`] {BEGINS}(?= )", text)
        assert runs_on is None, (name, text[max(0, runs_on.start() - 60) : runs_on.end() + 30])
        assert ".." not in text, (name, text)


@pytest.mark.parametrize("seeds", [1, 3])
def test_one_of_a_thing_is_no_plural(seeds):
    one = the_configuration()
    figure2, grid = one.config["figure2"] | {"seeds": seeds}, one.config["running_time"] | {"n_shards": seeds}
    whole = the_configuration(seeds=seeds, figure2=figure2, running_time=grid)
    said = [target.caption(target.options(whole, name)) for name, target in targets.registry().items()]
    for text in said:
        assert not re.search(
            r"\(s\)|\b1 (seeds|fits|threads|shards|sweeps|chains)\b|\b[2-9] (seed|fit|thread|shard|sweep|chain)\b", text
        )
    named = "\n".join(said)
    assert named.count("1 seed" if seeds == 1 else "3 seeds") >= 10
    assert f"Spark {'1 shard' if seeds == 1 else '3 shards'}" in named or "not on Spark" in named


def test_only_what_is_an_abbreviation_has_capitals(said):
    for name, text in said:
        # paths, settings and names of packages are no words
        words = set(re.findall(r"(?<![\w./_])[A-Z][A-Z0-9]+(?![\w./_]|-jre)", text))
        assert words <= CAPITALS, (name, words - CAPITALS)


def test_names_of_datasets_are_those_of_their_corpora(said):
    for name, text in said:
        assert not re.search(r"\b(nips|pnas|nuswide|wikipedia|pubmed|aua|w100|w1000|labelme|uiucsports|stateunion)\b",
                             text), (name, text)  # fmt: skip


def test_captions_say_the_printed_rates_and_mini_batches(said):
    """UAI16 prints the rate for perplexity (5.2), mini-batches for figure 3 and for hours on Spark (5.4)."""
    for name, batches in (
        ("figure3", "50 (stated for figure 3"),
        ("table1", "50 (stated for figure 3"),
        ("table2", "500 (stated for the hours on Spark; SYNERGY, Twitch: 50"),
        ("table3", "500 (stated for the hours on Spark"),
        ("table4", "500 (stated for the hours on Spark"),
    ):
        about = " ".join(text for one, text in said if one == f"uai2016_{name}")
        rate = "learning rate (t + 1)^-0.8 (stated for perplexity)"
        assert f"mini-batches of {batches}), {rate}" in about, name


def test_the_visible_caption_has_at_most_60_words_on_any_data():
    """Its first paragraph; the report folds the others."""
    real = {name: corpus | {"source": "real excerpt"} for name, corpus in the_configuration().config["corpora"].items()}
    for whole in (the_configuration(), the_configuration(corpora=real)):
        for name, target in targets.registry().items():
            seen, *folded = target.caption(target.options(whole, name)).split("\n\n")
            assert len(seen.split()) <= 60, (name, seen)
            assert len(" ".join(folded).split()) <= 90, (name, folded)


def test_notes_below_a_table_have_at_most_60_words_and_a_link():
    for name, target in targets.registry().items():
        notes = [one for one in target.notes if not one.startswith("Departures from the paper: ")]
        assert len(" ".join(notes).split()) <= 60, (name, notes)
        assert len(target.notes) - len(notes) <= 1
        assert all("docs/papers/fidelity.md" in one for one in target.notes if one not in notes)


@pytest.mark.parametrize(
    ("chosen", "has", "lacks"),
    [
        (["nips"], ["NIPS (real);", "section of the proceedings"], ["W100:", "W1000)", "Articles"]),
        (["w100", "w1000"], ["Articles: W100: simulated", "(3 of W1000)"], ["NIPS: the truth"]),
    ],
)
def test_table_2_of_fastex_is_said_to_be_of_the_data_that_it_has(chosen, has, lacks):
    whole = the_configuration()
    whole.config["corpora"]["nips"] = {"source": "real"}
    runs = {name: run for name, run in whole.runs.items() if run["dataset"] in chosen}
    target = targets.registry()["nips2012_table2"]
    text = target.caption(target.options(configuration.Configuration(whole.config, chosen, runs), target.name))
    assert all(one in text for one in has), text
    assert not any(one in text for one in lacks), text
