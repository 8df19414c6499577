"""What both entries include, ../../Snakefile and ../Snakefile: the default configuration, all rules, the text of the
report."""

import shlex
import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.0")


# only then, since reports would else name an image that no job ran in
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:

    container: "mc2core.sif"


# Snakemake 9.27 writes the path of Python into commands as it is, and a shell would split it at a blank.
if Path(
    sys.executable
).is_file():  # and is not quoted yet, for another workflow that includes this one twice
    sys.executable = shlex.quote(sys.executable)


# the working directory's, if it has one; common.smk fills in what a configuration leaves out
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
    # it names the profiles again; with --directory, files named on the command line are not found from here
    with redirect_stderr(StringIO()), suppress(SystemExit, OSError):
        asked = parse_args(sys.argv[1:])[1].targets
    for sentence in configuration.misspelt(asked, [one.name for one in workflow.rules]):
        logger.warning(sentence)
