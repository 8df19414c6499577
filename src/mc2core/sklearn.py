"""MC2 for scikit-learn's pipelines (``pip install 'mc2core[sklearn]'``)."""

from mc2core.engines.running.estimator import MC2Clusterer

__all__ = ["MC2Clusterer"]
