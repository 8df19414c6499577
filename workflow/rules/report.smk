"""Claims and the report."""


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
    resources:
        **takes(500),
    params:
        code=code_digest("mc2core.experiments.report.tables"),
    message:
        "Gathering what the numbers say of the papers' claims"
    script:
        "../scripts/claims.py"


rule report_html:
    input:
        target_files(),
        "results/claims.csv",
    output:
        "results/report.html",
    log:
        "results/logs/report.log",
    resources:
        **takes(1000),
    params:
        # of the whole workflow, of which this one may be a module
        snakefile=lambda wildcards: workflow.main_snakefile,
        plan=lambda wildcards: workflow.config,
    message:
        "Writing {output}"
    script:
        "../scripts/report_html.py"
