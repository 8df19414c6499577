"""Tables, figures and the report; each rule is named after its target."""


rule icml2014_figure1:
    output:
        report(
            "results/icml2014/icml2014_figure1.png",
            caption="../report/diagram.rst",
            category="ICML 2014",
            labels={"item": "figure 1", "shows": "plate diagrams"},
        ),
        pdf="results/icml2014/icml2014_figure1.pdf",
        csv="results/icml2014/icml2014_figure1.csv",
    log:
        "results/logs/icml2014/icml2014_figure1.log",
    resources:
        **takes(500),
    params:
        name="icml2014_figure1",
        story="MC2 in its generative form (left) and in its stick-breaking form (right)",
        paper="ICML 2014, figure 1",
        code=code_digest("mc2core.experiments.report.diagrams"),
    message:
        "Drawing {params.name}: {params.story}"
    script:
        "../scripts/diagram.py"


use rule icml2014_figure1 as uai2016_figure1 with:
    output:
        report(
            "results/uai2016/uai2016_figure1.png",
            caption="../report/diagram.rst",
            category="UAI 2016",
            labels={"item": "figure 1", "shows": "plate diagram"},
        ),
        pdf="results/uai2016/uai2016_figure1.pdf",
        csv="results/uai2016/uai2016_figure1.csv",
    log:
        "results/logs/uai2016/uai2016_figure1.log",
    params:
        name="uai2016_figure1",
        story="MC2 with the tables of each cluster, truncated at K clusters, T tables and M topics",
        paper="UAI 2016, figure 1",
        code=code_digest("mc2core.experiments.report.diagrams"),


use rule icml2014_figure1 as uai2016_figure2 with:
    output:
        report(
            "results/uai2016/uai2016_figure2.png",
            caption="../report/diagram.rst",
            category="UAI 2016",
            labels={"item": "figure 2", "shows": "variational factorisation"},
        ),
        pdf="results/uai2016/uai2016_figure2.pdf",
        csv="results/uai2016/uai2016_figure2.csv",
    log:
        "results/logs/uai2016/uai2016_figure2.log",
    params:
        name="uai2016_figure2",
        story="the variational family, in which the cluster and the tables of a document stay coupled",
        paper="UAI 2016, figure 2",
        code=code_digest("mc2core.experiments.report.diagrams"),


rule icml2014_figure2:
    input:
        corpus="results/corpora/letters",
        models=models_of("icml2014_figure2"),
    output:
        report(
            "results/icml2014/icml2014_figure2.png",
            caption="../report/icml2014_figure2.rst",
            category="ICML 2014",
            labels={"item": "figure 2", "shows": "letters found"},
        ),
        pdf="results/icml2014/icml2014_figure2.pdf",
        csv="results/icml2014/icml2014_figure2.csv",
        claims="results/icml2014/icml2014_figure2_claims.csv",
    log:
        "results/logs/icml2014/icml2014_figure2.log",
    resources:
        **takes(500),
    params:
        sweeps=config["fit"]["letters"]["iterations"],
        n_seeds=config["seeds"],
        corpus=config["corpora"]["letters"],
        code=code_digest("mc2core.experiments.icml2014.letters"),
    message:
        "Drawing icml2014_figure2: letters, words and their context, truth beside MC2"
    script:
        "../scripts/icml2014_figure2.py"


rule icml2014_table1:
    input:
        scores=scores_of("icml2014_table1"),
        paper=workflow.source_path("../paper/icml2014_table1.csv"),
    output:
        csv="results/icml2014/icml2014_table1.csv",
        md="results/icml2014/icml2014_table1.md",
        tex="results/icml2014/icml2014_table1.tex",
        html=report(
            "results/icml2014/icml2014_table1.html",
            caption="../report/icml2014_table1.rst",
            category="ICML 2014",
            labels={"item": "table 1", "shows": "held-out perplexity"},
        ),
        claims="results/icml2014/icml2014_table1_claims.csv",
    log:
        "results/logs/icml2014/icml2014_table1.log",
    resources:
        **takes(500),
    params:
        estimators=config["estimators"],
        n_seeds=config["seeds"],
        datasets=[name for name in ("nips", "pnas") if name in CHOSEN],
        corpora=config["corpora"],
        code=code_digest("mc2core.experiments.report.tables"),
    message:
        "Writing icml2014_table1: held-out perplexity of MC2 with each context"
    script:
        "../scripts/icml2014_table1.py"


rule icml2014_figure3:
    input:
        corpus="results/corpora/nips",
        models=models_of("icml2014_figure3", seeds=[0]),
    output:
        report(
            "results/icml2014/icml2014_figure3.png",
            caption="../report/icml2014_figure3.rst",
            category="ICML 2014",
            labels={"item": "figure 3", "shows": "one cluster"},
        ),
        pdf="results/icml2014/icml2014_figure3.pdf",
        csv="results/icml2014/icml2014_figure3.csv",
    log:
        "results/logs/icml2014/icml2014_figure3.log",
    resources:
        **takes(1000),
    params:
        sizes=config["figure3"],
        corpus=config["corpora"]["nips"],
        code=code_digest("mc2core.experiments.icml2014.cluster"),
    message:
        "Drawing icml2014_figure3: authors, papers and topics of one NIPS cluster"
    script:
        "../scripts/icml2014_figure3.py"


rule icml2014_figure7:
    input:
        expand("results/sizes/{cell}.csv", cell=FIGURE7_CELLS),
    output:
        report(
            "results/icml2014/icml2014_figure7.png",
            caption="../report/icml2014_figure7.rst",
            category="ICML 2014",
            labels={"item": "figure 7", "shows": "NMI by size of the data"},
        ),
        pdf="results/icml2014/icml2014_figure7.pdf",
        csv="results/icml2014/icml2014_figure7.csv",
        claims="results/icml2014/icml2014_figure7_claims.csv",
    log:
        "results/logs/icml2014/icml2014_figure7.log",
    resources:
        **takes(500),
    params:
        figure=config["figure7"],
        code=code_digest("mc2core.experiments.icml2014.sizes"),
    message:
        "Drawing icml2014_figure7: NMI over words per document and number of documents"
    script:
        "../scripts/icml2014_figure7.py"


rule uai2016_figure3:
    input:
        curves_of("uai2016_figure3"),
    output:
        report(
            "results/uai2016/uai2016_figure3.png",
            caption="../report/uai2016_figure3.rst",
            category="UAI 2016",
            labels={"item": "figure 3", "shows": "perplexity over time"},
        ),
        pdf="results/uai2016/uai2016_figure3.pdf",
        csv="results/uai2016/uai2016_figure3.csv",
        claims="results/uai2016/uai2016_figure3_claims.csv",
    log:
        "results/logs/uai2016/uai2016_figure3.log",
    resources:
        **takes(500),
    params:
        estimator=config["estimators"][0],
        n_seeds=config["seeds"],
        threads=config["threads"],
        datasets=[name for name in ("nips", "nuswide") if name in CHOSEN],
        corpora=config["corpora"],
        code=code_digest("mc2core.experiments.uai2016.curves_figure"),
    message:
        "Drawing uai2016_figure3: perplexity over seconds, SVI against Gibbs"
    script:
        "../scripts/uai2016_figure3.py"


rule uai2016_table1:
    input:
        speed=speed_of("uai2016_table1"),
        paper=workflow.source_path("../paper/uai2016_table1.csv"),
    output:
        csv="results/uai2016/uai2016_table1.csv",
        md="results/uai2016/uai2016_table1.md",
        tex="results/uai2016/uai2016_table1.tex",
        html=report(
            "results/uai2016/uai2016_table1.html",
            caption="../report/uai2016_table1.rst",
            category="UAI 2016",
            labels={"item": "table 1", "shows": "seconds on one core and on several"},
        ),
        claims="results/uai2016/uai2016_table1_claims.csv",
    log:
        "results/logs/uai2016/uai2016_table1.log",
    resources:
        **takes(500),
    params:
        n_seeds=config["seeds"],
        datasets=[name for name in ("nips", "nuswide") if name in CHOSEN],
        corpora=config["corpora"],
        code=code_digest("mc2core.experiments.report.tables"),
    message:
        "Writing uai2016_table1: seconds of SVI on one core and on several"
    script:
        "../scripts/uai2016_table1.py"


rule nips2012_figure1:
    input:
        traces=traces_of("nips2012_figure1"),
        corpora=corpora_of("nips2012_figure1"),
    output:
        report(
            "results/nips2012/nips2012_figure1.png",
            caption="../report/nips2012_figure1.rst",
            category="NIPS 2012",
            labels={"item": "figure 1", "shows": "VI over time"},
        ),
        pdf="results/nips2012/nips2012_figure1.pdf",
        csv="results/nips2012/nips2012_figure1.csv",
        claims="results/nips2012/nips2012_figure1_claims.csv",
    log:
        "results/logs/nips2012/nips2012_figure1.log",
    resources:
        **takes(500),
    params:
        runs=lambda wildcards: {run: RUNS[run] for run in runs_of("nips2012_figure1")},
        corpus=config["corpora"]["w100"],
        n_seeds=config["nips2012"]["seeds"],
        code=code_digest(
            "mc2core.experiments.nips2012.convergence",
            "mc2core.experiments.nips2012.convergence_figure",
        ),
    message:
        "Drawing nips2012_figure1: distance from the truth over time, FastEx and its rivals"
    script:
        "../scripts/nips2012_figure1.py"


rule nips2012_table1:
    input:
        times="results/times/nips2012.csv",
        paper=workflow.source_path("../paper/nips2012_table1.csv"),
    output:
        csv="results/nips2012/nips2012_table1.csv",
        md="results/nips2012/nips2012_table1.md",
        tex="results/nips2012/nips2012_table1.tex",
        html=report(
            "results/nips2012/nips2012_table1.html",
            caption="../report/nips2012_table1.rst",
            category="NIPS 2012",
            labels={"item": "table 1", "shows": "microseconds a document"},
        ),
        claims="results/nips2012/nips2012_table1_claims.csv",
    log:
        "results/logs/nips2012/nips2012_table1.log",
    resources:
        **takes(500),
    params:
        grid=config["nips2012"]["table1"],
        code=code_digest("mc2core.experiments.nips2012.times"),
    message:
        "Writing nips2012_table1: microseconds a document"
    script:
        "../scripts/nips2012_table1.py"


rule nips2012_table2:
    input:
        traces=traces_of("nips2012_table2"),
        corpora=corpora_of("nips2012_table2"),
        paper=workflow.source_path("../paper/nips2012_table2.csv"),
    output:
        csv="results/nips2012/nips2012_table2.csv",
        md="results/nips2012/nips2012_table2.md",
        tex="results/nips2012/nips2012_table2.tex",
        html=report(
            "results/nips2012/nips2012_table2.html",
            caption="../report/nips2012_table2.rst",
            category="NIPS 2012",
            labels={"item": "table 2", "shows": "VI and speed-up"},
        ),
        claims="results/nips2012/nips2012_table2_claims.csv",
    log:
        "results/logs/nips2012/nips2012_table2.log",
    resources:
        **takes(500),
    params:
        runs=lambda wildcards: {run: RUNS[run] for run in runs_of("nips2012_table2")},
        corpora=config["corpora"],
        n_seeds=config["nips2012"]["seeds"],
        code=code_digest("mc2core.experiments.nips2012.convergence"),
    message:
        "Writing nips2012_table2: distance from the truth and speed-up over the baseline"
    script:
        "../scripts/nips2012_table2.py"


rule claims:
    input:
        claims_files(),
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
        snakefile=lambda wildcards: workflow.main_snakefile,
        plan=config,
    message:
        "Writing {output}"
    script:
        "../scripts/report_html.py"
