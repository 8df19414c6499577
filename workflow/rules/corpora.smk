"""Rules that fetch source files, convert large files to shards, and build corpora."""


include: "sources.smk"


rule fetch:
    output:
        "results/sources/{dataset}/{file}",
    log:
        "results/logs/fetch/{dataset}/{file}.log",
    wildcard_constraints:
        file="|".join(re.escape(row["file"]) for row in CONFIGURATION.sources),
    conda:
        "../envs/data.yaml"
    resources:
        **takes(500),
    params:
        catalogue=table(CATALOGUE),
    message:
        "Fetching {wildcards.file} of {wildcards.dataset}"
    script:
        "../scripts/fetch.py"


# The files of PubMed's baseline change each year, so this checkpoint lists them; datasets.tsv does not contain them.
checkpoint list_baseline:
    output:
        "results/sources/pubmed/baseline.tsv",
    log:
        "results/logs/fetch/pubmed/baseline.log",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(500),
    message:
        "Listing the baseline of PubMed"
    script:
        "../scripts/list_baseline.py"


use rule fetch as fetch_baseline with:
    input:
        catalogue="results/sources/pubmed/baseline.tsv",
    output:
        "results/sources/{dataset}/{file}",
    log:
        "results/logs/fetch/{dataset}/{file}.log",
    wildcard_constraints:
        dataset="pubmed",
        file=r"pubmed\d\dn\d{4}\.xml\.gz",
    params:
        catalogue=lambda wildcards, input: input.catalogue,


# NCBI allows three requests per second, so years are fetched one after the other.
rule fetch_year:
    input:
        year_before,
    output:
        "results/sources/pubmed/pnas-{year}.xml.gz",
    log:
        "results/logs/fetch/pubmed/pnas-{year}.log",
    wildcard_constraints:
        year=r"\d{4}",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(500),
    message:
        "Fetching the citations of PNAS in {wildcards.year}"
    script:
        "../scripts/fetch_year.py"


rule unpack_features:
    input:
        "results/sources/nuswide/NUS_WID_Low_Level_Features.rar",
    output:
        "results/sources/nuswide/BoW_Train_int.dat",
        "results/sources/nuswide/BoW_Test_int.dat",
    log:
        "results/logs/fetch/nuswide/unpack.log",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(500),
    message:
        "Unpacking the visual words of NUS-WIDE"
    script:
        "../scripts/unpack_features.py"


rule dump_ranges:
    input:
        dump="results/sources/wikipedia/{stem}-multistream.xml.bz2",
        index="results/sources/wikipedia/{stem}-multistream-index.txt.bz2",
    output:
        "results/shards/wikipedia/{stem}-multistream.xml.bz2/{parts}-ranges.json",
    log:
        "results/logs/shards/wikipedia/{stem}-{parts}-ranges.log",
    wildcard_constraints:
        stem="[^/]+",
        parts=r"\d+",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(1000),
    message:
        "Cutting {wildcards.stem} into {wildcards.parts} parts"
    script:
        "../scripts/dump_ranges.py"


# Shards are kept, so that a corpus with other words, contexts or categories can be built without parsing again.
rule parse_dump:
    input:
        dump="results/sources/wikipedia/{file}",
        ranges=parts_index,
    output:
        directory("results/shards/wikipedia/{file}/{part}-of-{parts}"),
    log:
        "results/logs/shards/wikipedia/{file}/{part}-of-{parts}.log",
    wildcard_constraints:
        file="[^/]+",
        part=r"\d+",
        parts=r"\d+",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(1000),
    params:
        allow_truncated=config["corpora"]["wikipedia"]["allow_truncated"],
        code=code_digest("mc2papers.datasets.dumps.wikipedia"),
    message:
        "Parsing {wildcards.file}, part {wildcards.part} of {wildcards.parts}"
    script:
        "../scripts/parse_dump.py"


rule first_writers:
    input:
        "results/sources/wikipedia/{file}",
    output:
        "results/shards/wikipedia/{file}.npz",
    log:
        "results/logs/shards/wikipedia/{file}.log",
    wildcard_constraints:
        file="[^/]+",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(2000),
    params:
        allow_truncated=config["corpora"]["wikipedia"]["allow_truncated"],
        code=code_digest("mc2papers.datasets.dumps.wikipedia"),
    message:
        "Looking for the first writers of articles in {wildcards.file}"
    script:
        "../scripts/first_writers.py"


rule parse_citations:
    input:
        "results/sources/pubmed/{file}",
    output:
        directory("results/shards/{citations}/{file}"),
    log:
        "results/logs/shards/{citations}/{file}.log",
    wildcard_constraints:
        citations="pubmed|pnas",
        file="[^/]+",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(1000),
    params:
        selection=citation_selection,
        allow_truncated=lambda wildcards: config["corpora"][wildcards.citations][
            "allow_truncated"
        ],
        code=code_digest("mc2papers.datasets.dumps.pubmed"),
    message:
        "Parsing {wildcards.file} for {wildcards.citations}"
    script:
        "../scripts/parse_citations.py"


rule corpus:
    input:
        unpack(corpus_files),
    output:
        directory("results/corpora/{dataset}"),
    log:
        "results/logs/corpora/{dataset}.log",
    conda:
        "../envs/data.yaml"
    resources:
        **takes(corpus_memory),
    params:
        corpus=lambda wildcards: config["corpora"][wildcards.dataset],
        paper=own_part("workflow/paper/datasets.csv"),
        counts=printed_counts,
        code=code_digest("mc2papers.datasets.catalogue"),
    message:
        "Preparing corpus {wildcards.dataset} (source: {params.corpus[source]})"
    script:
        "../scripts/corpus.py"


rule corpora:
    input:
        expand("results/corpora/{dataset}", dataset=CONFIGURATION.chosen),
