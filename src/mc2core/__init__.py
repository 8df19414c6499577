"""mc2core: multilevel clustering with group-level contexts (MC2, SVI-MC2, FastEx).

The public names are those of ``__init__.pyi``, loaded when first asked for: all of them together take seconds, and a
command or a job needs a few.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
