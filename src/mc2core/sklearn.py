"""MC2 for scikit-learn's pipelines (``pip install 'mc2core[sklearn]'``)."""

from mc2core.base import extras

extras.require("sklearn", extra="sklearn", purpose="mc2core.sklearn")

from mc2core.engines.running.estimator import MC2Clusterer  # noqa: E402

__all__ = ["MC2Clusterer"]
