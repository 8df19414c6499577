"""Your own studies: each module in this package that has a ``TARGET`` is a target (:mod:`mc2papers.targets`)."""
