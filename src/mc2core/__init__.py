"""mc2core: multilevel clustering with group-level contexts (MC2, SVI-MC2, FastEx).

The public names are those of ``__init__.pyi``, loaded when first asked for: all of them together take seconds, and a
command or a job needs a few.
"""

from pathlib import Path

import lazy_loader

from mc2core.compute import kernel_cache

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

kernel_cache.drop_stale(Path(__file__).parent)
