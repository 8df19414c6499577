from . import clustering as clustering
from . import perplexity as perplexity
from .corpus import Corpus as Corpus
from .inference.running.loop import Fit as Fit
from .inference.running.loop import fit as fit
from .posterior import Posterior as Posterior

__version__: str
