"""Names of the datasets, and the model from which each simulated dataset is drawn.

This module loads quickly, because every job of a workflow reads it, and few jobs need the readers and simulators of the
catalogue.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MC2, MIXTURE, CORRELATED = "MC2", "mixture of multinomials", "correlated topics, bursty words"
#: values of the setting ``drawn_from`` of a simulated corpus (:data:`mc2papers.datasets.simulated.shapes.LAWS`)
LAWS = {"mc2": MC2, "correlated": CORRELATED}


@dataclass(frozen=True)
class Origin:
    """Title of a dataset, and model of its simulator.

    title : name in figures and tables.
    model : default model of the simulator; "" if the dataset is not simulated.
    by_paper : whether the paper itself simulates the data, so that simulated data can test its claims.
    in_papers : whether a paper reports results on the dataset.
    """

    title: str
    model: str = ""
    by_paper: bool = False
    in_papers: bool = True


@dataclass(frozen=True)
class Data:
    """Kind of the data on which a claim is judged.

    label : "real", "real excerpt", "real, of no paper", "own", "drawn as in the paper (MC2)", "simulated (MC2)".
    is_papers : whether the data are the paper's data: real and complete, or drawn as in the paper.
    owner : model from which the data were simulated in place of real data; a claim in favour of this model is circular.
        "" for real data, and for data that the paper itself simulates.
    size, limits : data and computation behind a verdict, and its limits (:func:`mc2papers.report.extent.said`).
    per_class : mean number of documents per class if claims are judged by the classes; otherwise infinite.
    """

    label: str
    is_papers: bool = False
    owner: str = ""
    size: str = ""
    limits: str = ""
    per_class: float = math.inf


ORIGINS = {
    "letters": Origin("letters", MC2, by_paper=True),
    "nips": Origin("NIPS", MC2),
    "pnas": Origin("PNAS", MC2),
    "nuswide": Origin("NUS-WIDE", MC2),
    "wikipedia": Origin("Wikipedia", MC2),
    "pubmed": Origin("PubMed", MC2),
    "aua": Origin("AUA", MC2),
    "w100": Origin("W100", MIXTURE),
    "w1000": Origin("W1000", MIXTURE),
    # not a dataset of a configuration: corpora for the times of NIPS12 table 1, one per number of clusters
    "articles": Origin("simulated articles", MIXTURE),
    "labelme": Origin("LabelMe", in_papers=False),
    "uiucsports": Origin("UIUC-Sports", in_papers=False),
    "ohsumed": Origin("Ohsumed", in_papers=False),
    "stateunion": Origin("State of the Union", in_papers=False),
    "movies": Origin("Movies", in_papers=False),
    "cora": Origin("Cora", in_papers=False),
    "citeseer": Origin("CiteSeer", in_papers=False),
    "acm": Origin("ACM", in_papers=False),
    "poliblog": Origin("Political blogs", in_papers=False),
    "sotu": Origin("State of the Union paragraphs", in_papers=False),
    "synergy": Origin("SYNERGY", in_papers=False),
    "twitch": Origin("Twitch", in_papers=False),
    "acl": Origin("ACL Anthology", in_papers=False),
    "wikiimages": Origin("Wikipedia images", in_papers=False),
    "clinc": Origin("CLINC150", in_papers=False),
    "mine": Origin("own corpus", in_papers=False),
}


def model_of(dataset: str, corpus: Mapping[str, Any]) -> str:
    """Return the model from which a simulated corpus is drawn; ``corpus`` is its entry in the configuration."""
    return LAWS[corpus["drawn_from"]] if "drawn_from" in corpus else ORIGINS[dataset].model


def data_of(dataset: str, corpus: Mapping[str, Any]) -> Data:
    """Return the kind of data of a dataset of ORIGINS.

    corpus : entry of the dataset in the configuration, with ``source``
        (of :data:`mc2papers.datasets.catalogue.SOURCES`) and perhaps ``drawn_from``.
    """
    origin = ORIGINS[dataset]
    if corpus["source"] != "simulated":
        is_real = corpus["source"] == "real"
        label = corpus["source"] if origin.in_papers or not is_real else "real, of no paper"
        return Data(label, is_real and origin.in_papers)
    model = model_of(dataset, corpus)
    how = "drawn as in the paper" if origin.by_paper else "simulated"
    return Data(f"{how} ({model})", origin.by_paper, "" if origin.by_paper else model)
