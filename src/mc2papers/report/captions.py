"""Phrases that several captions share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mc2papers.datasets.origins import ORIGINS, data_of

#: name of MC2 with a document level in tables, a row that the papers do not have
DOCUMENT_LEVEL = "MC2, document level (ours)"
ABOUT_DOCUMENT_LEVEL = (
    f'In "{DOCUMENT_LEVEL}", each document has its own topic proportions; no verdict on the paper uses it.'
)
#: MC2 as users fit it by default, a row of icml2014_table1
REPEATS = "MC2, document level and repeated words (ours)"
ABOUT_REPEATS = f'"{REPEATS}" is our default model, in which documents also repeat their words.'


def counted(number: int, one: str, several: str = "") -> str:
    """Return a count with its noun, such as "1 seed" or "3 seeds"; ``one`` is the singular."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def say_names(names: Iterable[str]) -> str:
    """Return the titles of datasets, such as "NIPS and NUS-WIDE", from their names in the configuration."""
    return " and ".join(ORIGINS[name].title for name in names)


def say_data(corpora: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the titles of corpora with the kind of their data, such as "NIPS and PNAS (simulated)"."""
    names: dict[str, list[str]] = {}
    for name, corpus in corpora.items():
        names.setdefault(data_of(name, corpus).label.partition(" (")[0], []).append(name)
    return ", ".join(f"{say_names(datasets)} ({kind})" for kind, datasets in names.items())


def say_source(name: str, corpus: Mapping[str, Any]) -> str:
    """Return the title of a corpus with its data; ``corpus`` is its entry in the configuration.

    An example is "W100: simulated (mixture of multinomials), 0.01 of the paper's size".
    """
    scale = f", {corpus['scale']} of the paper's size" if corpus["source"] == "simulated" and "scale" in corpus else ""
    return f"{ORIGINS[name].title}: {data_of(name, corpus).label}{scale}"


def say_chains(lengths: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the lengths of chains as text; ``lengths`` has the entry of ``fit`` in the configuration by dataset."""
    names: dict[str, list[str]] = {}
    for name, one in lengths.items():
        names.setdefault(f"{counted(one['iterations'], 'sweep')}, {one['burn_in']} of them burn-in", []).append(name)
    sweeps = [length if len(names) == 1 else f"{length} ({say_names(on)})" for length, on in names.items()]
    return f"MC2 and HDP are sampled by collapsed Gibbs in {', '.join(sweeps)}."


def say_sources(corpora: Mapping[str, Mapping[str, Any]], favoured: str = "") -> str:
    """Return one sentence per corpus, and another sentence if a corpus is drawn from the model that a claim favours."""
    sentences = [f"{say_source(name, corpus)}." for name, corpus in corpora.items()]
    if favoured and any(data_of(name, corpus).owner == favoured for name, corpus in corpora.items()):
        sentences.append(f"Data drawn from {favoured} cannot support claims in favour of {favoured}.")
    return " ".join(sentences)
