"""Write Snakemake's HTML report on the input files of this job."""

import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from mc2core.base.logs import job

with job(snakemake.log[0]), tempfile.TemporaryDirectory() as folder:
    configuration = Path(folder) / "configuration.yaml"
    configuration.write_text(yaml.safe_dump(dict(snakemake.params.configuration)), encoding="utf-8")
    # --nolock, because the running workflow has the lock, and a report only reads files
    options = ["--nolock", "--workflow-profile", "none", "--cores", "1", "--configfile", str(configuration)]
    command = [sys.executable, "-m", "snakemake", "--snakefile", snakemake.params.snakefile, *options]
    with open(snakemake.log[0], "a", encoding="utf-8") as log:
        subprocess.run(
            [*command, "--report", snakemake.output[0], "--", *snakemake.input], stdout=log, stderr=log, check=True
        )
