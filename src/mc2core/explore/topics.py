"""What a model found, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mc2core.model import Model


def describe_topics(model: Model, n_words: int = 10) -> pd.DataFrame:
    """Topics of the last sample, the commonest first: topic, weight (share of tokens of the model), words."""
    share = model.cluster_weights @ model.topic_given_cluster
    order = np.argsort(-share, kind="stable")
    words = model.top_words(n_words)
    return pd.DataFrame(
        {
            "topic": order + 1,
            "weight": share[order],
            "words": [" ".join(words[topic]) for topic in order],
        }
    )
