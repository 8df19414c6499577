"""mc2core: multilevel clustering with group-level contexts (MC2, SVI-MC2, FastEx).

``__init__.pyi`` lists the public names. Each is imported at its first use, because importing all takes seconds and a
command needs only a few of them.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
