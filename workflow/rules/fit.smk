"""Fits: one job for each run of the sheet and seed, or for all seeds of a run where its fits are short."""


# One early job compiles what all fits of an engine use, instead of each fit that comes first.
# Fits do not take it as ancient: Snakemake 9.27 then overlooks every other reason to run them. So only the engine's
# code, which is a reason to run its fits anyway, is a reason to run this; runs and contexts are looked up by the script.
rule warm_kernels:
    output:
        touch("results/warm_kernels/{engine}.done"),
    log:
        "results/logs/warm_kernels/{engine}.log",
    priority: 1
    resources:
        **takes(2000),
    params:
        sheet=sheet(EXPERIMENTS),
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
        run=one_of(
            run
            for run in RUNS
            if run not in (*PLAN.baselines, *PLAN.letters, *ALL_SEEDS)
        ),
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        checkpoint=lambda wildcards, output: checkpoint_of(
            output.posterior, f"{wildcards.run}-{wildcards.seed}"
        ),
        checkpoint_every=config["checkpoint_every"],
        code=lambda wildcards: fit_code(RUNS[wildcards.run]["fit"]["engine"]),
    message:
        "Fitting {wildcards.run}, seed {wildcards.seed}: {params.fit[engine]}, {params.fit[iterations]} iterations"
    script:
        "../scripts/fit.py"


# All seeds in one job: in the plans of small corpora these fits are shorter than the start of a job.
rule fit_seeds:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        posterior=expand("results/fits/{{run}}/{seed}/posterior.npz", seed=SEEDS),
        trace=expand("results/fits/{{run}}/{seed}/trace.tsv", seed=SEEDS),
        provenance=expand("results/fits/{{run}}/{seed}/provenance.json", seed=SEEDS),
    log:
        "results/logs/fits/{run}.log",
    wildcard_constraints:
        run=one_of(run for run in ALL_SEEDS if run not in WITH_SNAPSHOTS),
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        seeds=list(SEEDS),
        checkpoint=lambda wildcards, output: checkpoint_of(
            output.posterior[0], f"{wildcards.run}-{{seed}}"
        ),
        checkpoint_every=config["checkpoint_every"],
        follow_labels=lambda wildcards: not FOLLOWING.isdisjoint(
            RUNS[wildcards.run]["targets"]
        ),
        code=lambda wildcards: fit_code(RUNS[wildcards.run]["fit"]["engine"]),
    message:
        "Fitting {wildcards.run}: {params.fit[engine]}, {params.fit[iterations]} iterations"
    script:
        "../scripts/fit_seeds.py"


use rule fit_seeds as fit_letters with:
    output:
        posterior=expand(
            "results/fits/{{run}}/{seed}/posterior.npz", seed=LETTERS_SEEDS
        ),
        trace=expand("results/fits/{{run}}/{seed}/trace.tsv", seed=LETTERS_SEEDS),
        provenance=expand(
            "results/fits/{{run}}/{seed}/provenance.json", seed=LETTERS_SEEDS
        ),
    wildcard_constraints:
        run=one_of(run for run in PLAN.letters if run not in PLAN.baselines),
    params:
        seeds=list(LETTERS_SEEDS),


# All seeds in one job, as above.
rule baseline:
    input:
        unpack(baseline_files),
    output:
        fits=expand("results/fits/{{run}}/{seed}/assignments.tsv", seed=SEEDS),
        provenance=expand("results/fits/{{run}}/{seed}/provenance.json", seed=SEEDS),
    log:
        "results/logs/fits/{run}.log",
    wildcard_constraints:
        run=one_of(baselines_with("assignments.tsv")),
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        seeds=list(SEEDS),
        code=code_digest("mc2papers.baselines.files"),
    message:
        "Fitting {wildcards.run}: {params.fit[engine]}"
    script:
        "../scripts/baseline.py"


use rule baseline as baseline_model with:
    output:
        fits=expand("results/fits/{{run}}/{seed}/posterior.npz", seed=SEEDS),
        provenance=expand("results/fits/{{run}}/{seed}/provenance.json", seed=SEEDS),
    wildcard_constraints:
        run=one_of(set(baselines_with("posterior.npz")) - set(PLAN.letters)),


use rule baseline as baseline_letters with:
    output:
        fits=expand("results/fits/{{run}}/{seed}/posterior.npz", seed=LETTERS_SEEDS),
        provenance=expand(
            "results/fits/{{run}}/{seed}/provenance.json", seed=LETTERS_SEEDS
        ),
    wildcard_constraints:
        run=one_of(run for run in PLAN.letters if run in PLAN.baselines),
    params:
        seeds=list(LETTERS_SEEDS),


# Spark starts once for all corpora, and takes both cores.
rule baselines_on_spark:
    input:
        corpora=[f"results/corpora/{RUNS[run]['dataset']}" for run in ON_SPARK],
    output:
        fits=expand("results/fits/{run}/0/posterior.npz", run=ON_SPARK),
        provenance=expand("results/fits/{run}/0/provenance.json", run=ON_SPARK),
    log:
        "results/logs/fits/baselines_on_spark.log",
    threads: 2
    resources:
        **takes(3000),
    params:
        fits=[RUNS[run]["fit"] for run in ON_SPARK],
        code=code_digest("mc2papers.baselines.files"),
    message:
        f"Fitting on Spark: {', '.join(ON_SPARK)}"
    script:
        "../scripts/baselines_on_spark.py"


# All seeds in one job, as above.
rule fit_with_snapshots:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        snapshots=expand("results/snapshots/{{run}}/{seed}/snapshots.npz", seed=SEEDS),
        posterior=expand("results/snapshots/{{run}}/{seed}/posterior.npz", seed=SEEDS),
        trace=expand("results/snapshots/{{run}}/{seed}/trace.tsv", seed=SEEDS),
        provenance=expand(
            "results/snapshots/{{run}}/{seed}/provenance.json", seed=SEEDS
        ),
    log:
        "results/logs/snapshots/{run}.log",
    wildcard_constraints:
        run=one_of(run for run in RUNS if run not in WITH_SNAPSHOTS),
    threads: config["threads"]
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        seeds=list(SEEDS),
        checkpoint=lambda wildcards, output: checkpoint_of(
            output.posterior[0], f"{wildcards.run}-snapshots-{{seed}}"
        ),
        checkpoint_every=config["checkpoint_every"],
        n_snapshots=config["curves"]["n_snapshots"],
        code=lambda wildcards: fit_code(RUNS[wildcards.run]["fit"]["engine"]),
    message:
        "Fitting {wildcards.run} with {params.n_snapshots} snapshots on the way: {params.fit[engine]}, "
        "{params.fit[iterations]} iterations"
    script:
        "../scripts/fit_seeds.py"


use rule fit_with_snapshots as fit_seeds_with_snapshots with:
    output:
        snapshots=expand("results/snapshots/{{run}}/{seed}/snapshots.npz", seed=SEEDS),
        posterior=expand("results/fits/{{run}}/{seed}/posterior.npz", seed=SEEDS),
        trace=expand("results/fits/{{run}}/{seed}/trace.tsv", seed=SEEDS),
        provenance=expand("results/fits/{{run}}/{seed}/provenance.json", seed=SEEDS),
    wildcard_constraints:
        run=one_of(WITH_SNAPSHOTS),


rule speed:
    input:
        corpus=corpus_of,
        warm=warm_of,
    output:
        "results/speed/{run}.csv",
    log:
        "results/logs/speed/{run}.log",
    # for the fits on one core as well: the cores are free of other jobs while they are timed
    threads: config["curves"]["parallel_threads"]
    resources:
        **takes(2000),
    params:
        fit=lambda wildcards: RUNS[wildcards.run]["fit"],
        n_seeds=config["seeds"],
        code=lambda wildcards: fit_code(RUNS[wildcards.run]["fit"]["engine"]),
    message:
        "Timing {wildcards.run} on 1 and on {threads} cores"
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
