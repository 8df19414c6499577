"""What both entries include, ../../Snakefile and ../Snakefile: the default plan, all rules, the text of the report."""

import sys
import threading
from pathlib import Path

from snakemake.utils import min_version

from mc2papers import forking, handing_over

min_version("9.0")
# Rules name no conda file or container: all jobs share the one virtual environment that constraints.txt pins.


# the working directory's, if it has one; common.smk fills in what a plan leaves out
if Path("config/config.yaml").is_file():

    configfile: "config/config.yaml"


report: "../report/workflow.rst"


include: "common.smk"
include: "corpora.smk"
include: "fit.smk"
include: "score.smk"
include: "targets.smk"
include: "report.smk"


onstart:
    if workflow.local_exec:
        forking.start()
        # of a workflow that has this one as a module, other rules' commands may be no scripts
        if workflow.modifier.is_main_snakefile():
            shell.prefix(handing_over.prefix())


def end_at_once():
    """Cancel the timers by which Snakemake 9.27 would look for work again: it waits for the last, up to five seconds."""
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()


onsuccess:
    end_at_once()


onerror:
    end_at_once()


if workflow.is_main_process and workflow.modifier.is_main_snakefile():
    try:
        plan.check_targets(sys.argv[1:], [rule.name for rule in workflow.rules])
    except ValueError as error:
        raise WorkflowError(str(error)) from None
