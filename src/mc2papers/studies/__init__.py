"""Targets of studies of one's own: any module here with a ``TARGET``, of any name (:mod:`mc2papers.targets`)."""
