"""Make the table or figure that the rule names."""

from pathlib import Path

from mc2core.base.logs import job
from mc2papers import targets

with job(snakemake.log[0]):
    files = {name: [one] if isinstance(one, str) else list(one) for name, one in snakemake.input.items()}
    if snakemake.params.paper:
        files["paper"] = [str(snakemake.params.paper)]
    stem = Path(snakemake.output.csv).with_suffix("")
    params = snakemake.params
    targets.make(params.name, files, params.options, params.sources, stem)
