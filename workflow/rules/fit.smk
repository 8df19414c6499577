"""Rules that fit: one job per fit, and one job for a group of short fits."""


# One job per engine compiles the kernels before the first fit. Otherwise, the fits that start first would each compile.
# The file is not an ancient() input of fits, because Snakemake 9.27 would then overlook other reasons to run a fit.
# Fits therefore run again after this rule, so the rule depends only on the engine's code, which is a reason to run fits
# anyway. The script reads the runs and contexts from the configuration.
rule warm_kernels:
    output:
        touch("results/warm_kernels/{engine}.done"),
    log:
        "results/logs/warm_kernels/{engine}.log",
    priority: 1
    conda:
        "../envs/fits.yaml"
    resources:
        **takes(2000),
    params:
        table=table(EXPERIMENTS),
        schema=own_part("workflow/schemas/experiments.schema.yaml"),
        code=lambda wildcards: fit_code(wildcards.engine),
    message:
        "Compiling kernels of {wildcards.engine}"
    script:
        "../scripts/warm_kernels.py"


rule fit:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        posterior="results/fits/{run}/{seed}/posterior.npz",
        trace="results/fits/{run}/{seed}/trace.tsv",
        provenance="results/fits/{run}/{seed}/provenance.json",
    log:
        "results/logs/fits/{run}/{seed}.log",
    wildcard_constraints:
        run=one_of(run for run in ALONE if not CONFIGURATION.wants(run, "curves")),
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        runs=lambda wildcards: CONFIGURATION.fits_of(
            [wildcards.run], [int(wildcards.seed)]
        ),
        checkpoint_every=config["checkpoint_every"],
        code=lambda wildcards: fit_code(RUNS[wildcards.run]["fit"]["engine"]),
    message:
        "Fitting {wildcards.run}, seed {wildcards.seed}"
    script:
        "../scripts/fits.py"


use rule fit as fit_with_snapshots with:
    output:
        posterior="results/fits/{run}/{seed}/posterior.npz",
        trace="results/fits/{run}/{seed}/trace.tsv",
        provenance="results/fits/{run}/{seed}/provenance.json",
        snapshots="results/snapshots/{run}/{seed}/snapshots.npz",
    wildcard_constraints:
        run=one_of(run for run in ALONE if CONFIGURATION.wants(run, "curves")),


# One job fits and scores a group of runs, because most short fits take less time than the start of a job.
for group in GROUPS:

    rule:
        name:
            f"fit_{group[0].replace('-', '_')}"
        input:
            **inputs_of_group(group),
        output:
            [
                file
                for run in group
                for file in CONFIGURATION.files_of(run, CONFIGURATION.seeds_of(run))
            ],
        log:
            f"results/logs/fits/{group[0]}.log",
        conda:
            "../envs/fits.yaml"
        threads: 2 if CONFIGURATION.is_on_spark(group[0]) else config["threads"]
        resources:
            **takes(4000),
        params:
            runs=CONFIGURATION.fits_of(group),
            checkpoint_every=config["checkpoint_every"],
            code=partial(lambda one, wildcards: group_code(one), group),
        message:
            f"Fitting {', '.join(group)}"
        script:
            "../scripts/fits.py"


rule speed:
    input:
        **inputs_of_group(TIMED),
    output:
        expand("results/speed/{run}.csv", run=TIMED),
    log:
        "results/logs/speed.log",
    conda:
        "../envs/fits.yaml"
    # all threads are also requested for the fits on one core, so that no other job runs during the measurement
    threads: config["curves"]["parallel_threads"]
    resources:
        **takes(2000),
    params:
        runs={run: RUNS[run] for run in TIMED},
        n_seeds=config["seeds"],
        code=lambda wildcards: group_code(TIMED),
    message:
        f"Timing {', '.join(TIMED)} on one core and on several"
    script:
        "../scripts/speed.py"


rule batches:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        "results/batches/{run}.csv",
    log:
        "results/logs/batches/{run}.log",
    conda:
        "../envs/fits.yaml"
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        n_seeds=config["seeds"],
        code=lambda wildcards: code_digest(
            "mc2papers.uai2016.batches", "mc2core.inference.svi.engine"
        ),
    message:
        "Following {wildcards.run} from mini-batch to mini-batch"
    script:
        "../scripts/batches.py"


rule epochs:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        "results/epochs/{run}.csv",
    log:
        "results/logs/epochs/{run}.log",
    conda:
        "../envs/fits.yaml"
    threads: config["curves"]["parallel_threads"]
    resources:
        **takes(3000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        times=config["running_time"],
        spark=config["spark"],
        lack=missing(),
        code=lambda wildcards: code_digest(
            "mc2papers.uai2016.epochs",
            f"mc2core.inference.{RUNS[wildcards.run]['fit']['engine']}.engine",
        ),
    message:
        "Timing {wildcards.run} on threads and on Spark"
    script:
        "../scripts/epochs.py"
