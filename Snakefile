"""MC2 experiments: from source files to the papers' tables and figures. `snakemake --cores all` makes everything."""

from snakemake.utils import min_version

min_version("9.0")
# Rules name no conda file or container: all jobs share the one virtual environment that constraints.txt pins.


configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/fit.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"


rule all:
    default_target: True
    input:
        "results/report.html",


rule icml2014:
    input:
        target_files("icml2014"),


rule uai2016:
    input:
        target_files("uai2016"),


rule nips2012:
    input:
        target_files("nips2012"),
