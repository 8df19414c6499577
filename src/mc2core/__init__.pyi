from . import clustering as clustering
from . import perplexity as perplexity
from .corpus import Corpus as Corpus
from .engines.running.loop import Fit as Fit
from .engines.running.loop import fit as fit
from .model import Model as Model

__version__: str
