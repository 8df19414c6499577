"""MC2 for scikit-learn's pipelines (``pip install 'mc2core[sklearn]'``)."""

from mc2core.app.estimator import MC2Clusterer

__all__ = ["MC2Clusterer"]
