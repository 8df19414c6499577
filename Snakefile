"""MC2 experiments: from source files to the papers' tables and figures. `snakemake --cores all` makes everything."""


include: "workflow/rules/main.smk"


rule all:
    input:
        default_files(),
