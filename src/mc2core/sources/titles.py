"""Names of the datasets, as tables, figures and captions print them."""

TITLES = {
    "letters": "letters",
    "nips": "NIPS",
    "pnas": "PNAS",
    "nuswide": "NUS-WIDE",
    "wikipedia": "Wikipedia",
    "pubmed": "PubMed",
    "aua": "AUA",
    "w100": "W100",
    "w1000": "W1000",
    "labelme": "LabelMe",
    "uiucsports": "UIUC-Sports",
    "ohsumed": "ohsumed",
    "stateunion": "State of the Union",
    "mine": "own corpus",
}
