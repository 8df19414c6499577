from . import clustering as clustering
from . import perplexity as perplexity
from . import plots as plots
from .corpus import Corpus as Corpus
from .explore.frames import Findings as Findings
from .explore.frames import Fit as Fit
from .explore.frames import fit as fit
from .posterior import Posterior as Posterior

__version__: str
