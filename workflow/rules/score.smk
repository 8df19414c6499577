"""Rules that score fits, and rules that make and score the fits of single figures and tables."""

from mc2papers.labelled.contexts_help import runs_with_contexts


# Long fits are scored by separate jobs, so that they do not run again if the code of the scores changes.
rule score:
    input:
        corpus=corpus_of,
        fit=lambda wildcards: f"results/fits/{{run}}/{{seed}}/{CONFIGURATION.result_of(wildcards.run)}",
        provenance="results/fits/{run}/{seed}/provenance.json",
    output:
        "results/scores/{run}/{seed}.json",
    log:
        "results/logs/scores/{run}/{seed}.log",
    wildcard_constraints:
        run=one_of(run for run in RUNS if not CONFIGURATION.is_scored_at_once(run)),
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(4000),
    params:
        runs=lambda wildcards: CONFIGURATION.scores_of(
            wildcards.run, int(wildcards.seed)
        ),
        code=code_digest("mc2core.posterior.scores", "mc2papers.baselines.assignments"),
    message:
        "Scoring {wildcards.run}, seed {wildcards.seed}"
    script:
        "../scripts/score.py"


rule curves:
    input:
        unpack(curves_on),
        corpus="results/corpora/{dataset}",
    output:
        "results/curves/{dataset}.csv",
    log:
        "results/logs/curves/{dataset}.log",
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(4000),
    params:
        estimator=config["estimators"][0],
        code=code_digest("mc2papers.uai2016.curves", "mc2papers.datasets.catalogue"),
    message:
        "Scoring the snapshots on {wildcards.dataset}"
    script:
        "../scripts/curves.py"


rule letters_sizes:
    input:
        warm="results/warm_kernels/gibbs.done",
    output:
        "results/sizes/icml2014.csv",
    log:
        "results/logs/sizes/icml2014.log",
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(1000),
    params:
        figure=config["figure7"],
        fit=lambda wildcards: RUNS[runs_of("icml2014_figure7")[0]]["fit"],
        code=code_digest(
            "mc2papers.icml2014.sizes_fits",
            "mc2core.inference.gibbs.engine",
        ),
    message:
        "Fitting letters of several sizes, {params.figure[repeats]} repeats with and without context"
    script:
        "../scripts/letters_sizes.py"


rule contexts_help:
    input:
        corpus="results/corpora/{dataset}",
        warm=[f"results/warm_kernels/{engine}.done" for engine in ("gibbs", "svi")],
    output:
        "results/contexts_help/{dataset}.csv",
    log:
        "results/logs/contexts_help/{dataset}.log",
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        seeds=config["contexts_help"]["seeds"],
        tokens=lambda wildcards: config["contexts_help"]["tokens"].get(
            wildcards.dataset
        ),
        runs=lambda wildcards: {
            run: one
            for run, one in runs_with_contexts(CONFIGURATION).items()
            if one["dataset"] == wildcards.dataset
        },
        code=lambda wildcards: code_digest(
            "mc2papers.labelled.contexts_help_fits",
            "mc2core.inference.gibbs.engine",
            "mc2core.inference.svi.engine",
        ),
    message:
        "Fitting {wildcards.dataset} with and without its contexts, {params.seeds} samples"
    script:
        "../scripts/contexts_help.py"


rule fits:
    input:
        [
            f"results/scores/{run}/{seed}.json"
            for run in RUNS
            for seed in CONFIGURATION.seeds_of(run)
        ],


rule nips2012_times:
    input:
        warm="results/warm_kernels/fastex.done",
    output:
        "results/times/nips2012.csv",
    log:
        "results/logs/times/nips2012.log",
    conda:
        "../envs/fits.yaml"
    resources:
        **takes(2000, alone=True),
    params:
        settings=config["engines"].get("fastex", {}),
        grid=config["nips2012"]["table1"],
        n_seeds=config["seeds"],
        code=code_digest("mc2papers.nips2012.times", "mc2core.inference.fastex.engine"),
    message:
        "Timing FastEx, alone on the machine"
    script:
        "../scripts/nips2012_times.py"
