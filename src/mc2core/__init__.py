"""mc2core: multilevel clustering with group-level contexts (MC2, SVI-MC2, FastEx)."""

from mc2core.corpus import Corpus

__version__ = "0.1.0"
__all__ = ["Corpus", "__version__"]
