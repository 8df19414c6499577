"""The common part of ../../Snakefile and ../Snakefile: default configuration, all rules, and the text of the report."""

import shlex
import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.0")


# the image is set only if it is used; otherwise, reports would name an image in which no job ran
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:

    container: "mc2core.sif"


# Snakemake 9.27 writes the path of Python into commands without quotes, so a shell would split it at a blank.
if Path(
    sys.executable
).is_file():  # the path may be quoted already if another workflow includes this workflow twice
    sys.executable = shlex.quote(sys.executable)


# the configuration of the working directory, if it exists; common.smk adds missing keys
if Path("config/config.yaml").is_file():

    configfile: "config/config.yaml"


report: "../report/workflow.rst"


include: "common.smk"
include: "corpora.smk"
include: "fit.smk"
include: "score.smk"
include: "targets.smk"
include: "report.smk"


if workflow.is_main_process and IS_MAIN and "snakemake" in sys.argv[0]:
    from contextlib import redirect_stderr, suppress
    from io import StringIO

    from snakemake.cli import parse_args

    asked = []
    # parse_args prints the profiles again; with --directory, it does not find files on the command line
    with redirect_stderr(StringIO()), suppress(SystemExit, OSError):
        asked = parse_args(sys.argv[1:])[1].targets
    for sentence in configuration.misspelt(asked, [one.name for one in workflow.rules]):
        logger.warning(sentence)
