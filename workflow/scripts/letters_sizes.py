"""Fit letters data of several sizes, with and without context, in several repeats."""

import logging

import pandas as pd

from mc2core.base import storage
from mc2core.base.logs import job
from mc2papers.icml2014.sizes_fits import letters_of_size

with job(snakemake.log[0], snakemake.threads):
    figure, rows = snakemake.params.figure, []
    for axis in ("n_tokens", "n_documents"):
        for size in figure[axis]:
            logging.info("%s: %d", axis, size)
            fixed = {"n_documents": figure["fixed_n_documents"], "n_tokens": figure["fixed_n_tokens"]}
            of_size = letters_of_size(
                **fixed | {axis: size},
                run=snakemake.params.fit,
                **{name: figure[name] for name in ("noise", "repeats", "iterations")},
                threads=snakemake.threads,
            )
            rows.append(of_size.assign(axis=axis))
    with storage.replacing(snakemake.output[0]) as stream:
        pd.concat(rows).to_csv(stream, index=False)
