"""Source files and corpora."""


rule fetch:
    output:
        "results/sources/{dataset}/{file}",
    log:
        "results/logs/fetch/{dataset}/{file}.log",
    resources:
        mem_mb=500,
    params:
        catalogue="config/datasets.tsv",
    message:
        "Fetching {wildcards.file} of {wildcards.dataset}"
    script:
        "../scripts/fetch.py"


rule corpus:
    input:
        source_files,
    output:
        directory("results/corpora/{dataset}"),
    log:
        "results/logs/corpora/{dataset}.log",
    resources:
        mem_mb=2000,
    params:
        corpus=lambda wildcards: config["corpora"][wildcards.dataset],
        code=plan.code_digest("mc2core.datasets"),
    message:
        "Preparing corpus {wildcards.dataset} (source: {params.corpus[source]})"
    script:
        "../scripts/corpus.py"
