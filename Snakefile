"""MC2 experiments: from source files to the papers' tables and figures. `snakemake --cores all` makes everything."""

from snakemake.utils import min_version

min_version("9.0")
# Rules name no conda file or container: all jobs share the one virtual environment that constraints.txt pins.


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/targets.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        "results/report.html",
