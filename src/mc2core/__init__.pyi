from . import clustering as clustering
from . import perplexity as perplexity
from . import plots as plots
from .corpus import Corpus as Corpus
from .explore.compare import compare as compare
from .explore.compare import robustness as robustness
from .explore.fit import Fit as Fit
from .explore.fit import fit as fit
from .explore.guide import guide as guide
from .explore.tables import for_paper as for_paper
from .posterior import Posterior as Posterior

__version__: str
