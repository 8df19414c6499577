"""Rules for claims, the reproduction report, HTML reports of the user's corpus, and Snakemake's report."""

# A description of the data for both reports. The configuration does not suffice for it: it also has omitted datasets,
# and it has other keys if this workflow is a module.
ABOUT = (
    f"Datasets: {', '.join(CONFIGURATION.chosen)}; {config['seeds']} seed{'s' * (config['seeds'] > 1)}; perplexity by "
    f"{' and '.join(config['estimators'])}. Each table and figure says which of its data are simulated."
)
if lacking := [
    name for name in CONFIGURATION.asked if name not in CONFIGURATION.chosen
]:
    ABOUT += f" Left out, since their files are not here: {', '.join(lacking)}."


rule claims:
    input:
        [target.outputs()["claims"] for target in POSSIBLE if target.has_claims],
    output:
        csv="results/claims.csv",
        md="results/claims.md",
        tex="results/claims.tex",
        html=report(
            "results/claims.html",
            caption="../report/claims.rst",
            category="Claims",
            labels={"item": "claims", "shows": "what holds"},
        ),
    log:
        "results/logs/claims.log",
    conda:
        "../envs/report.yaml"
    resources:
        **takes(500),
    params:
        about=ABOUT,
        code=code_digest("mc2papers.report.tables"),
    message:
        "Gathering what the numbers say of the papers' claims"
    script:
        "../scripts/claims.py"


rule explore:
    input:
        corpus=corpus_of,
        posterior="results/fits/{run}/0/posterior.npz",
    output:
        directory("results/explore/{run}"),
    log:
        "results/logs/explore/{run}.log",
    wildcard_constraints:
        run=one_of(
            run for run in RUNS if CONFIGURATION.result_of(run) == "posterior.npz"
        ),
    conda:
        "../envs/report.yaml"
    resources:
        **takes(3000),
    params:
        title=lambda wildcards: f"{wildcards.run}: what {RUNS[wildcards.run]['method']} found",
        code=code_digest("mc2core.explore.describe"),
    message:
        "Describing the fit of {wildcards.run}: {output}/index.html"
    script:
        "../scripts/explore.py"


rule reproduction_report:
    input:
        [
            path
            for target in POSSIBLE
            for kind, path in target.outputs().items()
            if kind != "claims"
        ],
        explored(),
        claims="results/claims.csv",
        fits=found_by(scored_runs()),
        own=[f"results/fits/{run}/0/provenance.json" for run in OWN],
    output:
        "results/index.html",
    log:
        "results/logs/reproduction_report.log",
    conda:
        "../envs/report.yaml"
    resources:
        **takes(500),
    params:
        entries=lambda wildcards: [entry_of(target) for target in POSSIBLE],
        about=[ABOUT],
        own={run: f"results/explore/{run}" for run in OWN},
        code=code_digest(
            "mc2papers.report.reproduction_report", "mc2core.inference.running.summary"
        ),
    message:
        "Writing {output}"
    script:
        "../scripts/reproduction_report.py"


rule report_html:
    input:
        target_files(),
        "results/claims.csv",
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    conda:
        "../envs/report.yaml"
    resources:
        **takes(1000),
    params:
        # the main workflow, of which this workflow may be a module; a Path for the reason in own_part
        snakefile=lambda wildcards: Path(workflow.main_snakefile),
        configuration=lambda wildcards: workflow.config,
    message:
        "Writing {output}"
    script:
        "../scripts/report_html.py"
