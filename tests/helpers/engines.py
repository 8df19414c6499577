"""Small fits of Gibbs's kernels and of SVI."""

from __future__ import annotations

from helpers.fits import gibbs, svi

from mc2core.inference.gibbs.engine import KERNELS

ENGINES = {
    **{
        kernel: lambda kernel=kernel, **more: gibbs(
            kernel=kernel, document_level=kernel == "parallel", start_topics=4, **more
        )
        for kernel in KERNELS
    },
    "svi": lambda **more: svi(max_clusters=3, max_tables=2, max_topics=4, batch_size=5, **more),
}
