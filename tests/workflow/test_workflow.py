"""The workflow as a user calls it: configurations, experiments tables, targets, errors, and the test configuration from
end to end."""

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from helpers.configurations import SCHEMAS, default_configuration
from helpers.crossed import first
from helpers.workflow_calls import ROOT, copy_checkout, snakemake
from snakemake.utils import update_config

from mc2core.base import storage
from mc2core.compute.spark import missing
from mc2papers import code_digest, configuration, targets
from mc2papers.report.captions import DOCUMENT_LEVEL

TEST_CONFIGURATION = "--configfile", "config/test.yaml"
CONFIG = default_configuration()
# there are no simulated stand-ins for the labelled corpora
TARGETS = {name for name, one in targets.registry().items() if one.paper not in targets.NO_PAPER}


def jobs(output):
    """``{rule: number of jobs}`` of a dry run."""
    stats = re.search(r"^job +count\n-+ +-+\n(.*?)\n\n", output, re.M | re.S)
    return {name: int(count) for name, count in (line.split() for line in stats[1].splitlines())} if stats else {}


def grouped(planned):
    """``{rule: number of jobs}`` with the rules of fits that are together as one."""
    rules = [name for name in planned if name.startswith("fit_") and name not in ("fit_with_snapshots", "fit_aua_lda")]
    others = {name: count for name, count in planned.items() if name not in rules}
    return others | {"fit_...": sum(planned[name] for name in rules)}


def merged(changes):
    """A whole configuration of one that holds what differs from the default."""
    whole = copy.deepcopy(CONFIG)
    update_config(whole, changes)
    return whole


def resolved(schema):
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        schema = SCHEMAS["config"]["definitions"][name] | {key: value for key, value in schema.items() if key != "$ref"}
    return schema


def fields(schema, path=()):
    """Every key below ``properties``, as (path, schema)."""
    for name, inner in schema.get("properties", {}).items():
        inner = resolved(inner)
        yield (*path, name), inner
        yield from fields(inner, (*path, name))


class TestPlan:
    def test_config_names_every_key_of_the_schema_and_no_other(self):
        configuration.check(CONFIG, SCHEMAS["config"], "config.yaml")
        for path, _ in fields(SCHEMAS["config"]):
            value = CONFIG
            for name in path:
                assert name in value, f"config.yaml lacks {'.'.join(path)}"
                value = value[name]
                if value is None:  # and holds nothing
                    break

    def test_every_key_is_described_closed_and_required(self):
        for path, schema in fields(SCHEMAS["config"]):
            assert schema.get("description"), path
            assert {"type", "enum"} & schema.keys(), path
        objects = [((), SCHEMAS["config"]), *fields(SCHEMAS["config"])]
        for path, schema in objects:
            if "properties" in schema:
                assert schema["additionalProperties"] is False, path
                assert set(schema.get("required", ())) == set(schema["properties"]), path

    @pytest.mark.parametrize("name", ["test.yaml", "paper.yaml", "printed.yaml", "nips.yaml", "real.yaml"])
    def test_other_configurations_hold_only_what_differs(self, name):
        changes = yaml.safe_load((ROOT / "config" / name).read_text())
        configuration.check(merged(changes), SCHEMAS["config"], name)

        def same(value, default, path):
            if isinstance(value, dict):
                for key, inner in value.items():
                    # of these config.yaml holds no defaults
                    if path[:1] in (("models",), ("engines",), ("baselines",)):
                        assert inner != default.get(key), f"{name}: {'.'.join((*path, key))} is as in config.yaml"
                    else:
                        same(inner, default[key], (*path, key))
            else:
                assert value != default, f"{name}: {'.'.join(path)} is as in config.yaml"

        same(changes, CONFIG, ())

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"sedes": 3}, "c.yaml: 'sedes' is not known; did you mean 'seeds'?"),
            ({"fit": {"nips": {"tihn": 3}}}, "c.yaml: fit, nips: 'tihn' is not known; did you mean 'thin'?"),
            ({"contexts": {"year": {"famly": "dirichlet"}}}, "year: 'famly' is not known; did you mean 'family'?"),
            ({"corpora": {"nips": {"scael": 1.0}}}, "corpora, nips: 'scael' is not known; did you mean 'scale'?"),
            ({"zzz": 1}, "'zzz' is not known; known: datasets, data_folder,"),
        ],
    )
    def test_unknown_key_is_named_with_the_nearest_one(self, change, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            configuration.check(merged(change), SCHEMAS["config"], "c.yaml")

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"seeds": -2}, "c.yaml: seeds: -2 is less than the minimum of 1 (Number of fits of each row of"),
            ({"seeds": "two"}, "c.yaml: seeds: 'two' is not of type 'integer' (Number of fits"),
            ({"fit": CONFIG["fit"] | {"nips": {"thin": 0}}}, "c.yaml: fit, nips"),
            ({"datasets": []}, "c.yaml: datasets: [] should be non-empty"),
        ],
    )
    def test_value_that_is_not_allowed_is_named_in_one_sentence(self, change, message):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            configuration.check(CONFIG | change, SCHEMAS["config"], "c.yaml")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 300

    def test_each_corpus_has_a_length_of_its_fits(self):
        configuration.check_lengths(CONFIG)
        with pytest.raises(ValueError, match=r"^configuration: fit: 'nisp' is not known; did you mean 'nips'\?$"):
            configuration.check_lengths(merged({"fit": {"nisp": CONFIG["fit"]["nips"]}}))
        why = r"^configuration: fit has no entry for 'tweets', which is in corpora; add one$"
        with pytest.raises(ValueError, match=why):
            configuration.check_lengths(merged({"corpora": {"tweets": {}}}))

    def test_data_folder_must_be_a_folder(self, tmp_path):
        file = tmp_path / "data.zip"
        file.touch()
        for data_folder in (file, tmp_path / "nowhere"):
            why = re.escape(f"data_folder: '{data_folder}' is no folder; a folder of source files")
            with pytest.raises(ValueError, match=why):
                configuration.check_data_folder(CONFIG | {"data_folder": str(data_folder)})
        for data_folder in ("", None, str(tmp_path)):
            configuration.check_data_folder(CONFIG | {"data_folder": data_folder})


def experiments(tmp_path, text, chosen=("nips",)):
    path = tmp_path / "experiments.tsv"
    path.write_text(text)
    return configuration.read_experiments(path, SCHEMAS["experiments"], CONFIG, chosen)


HEADER = "run\ttargets\tdataset\tmethod\tmodel\tengine\tcontexts\tsettings\n"


class TestSheet:
    def test_experiments_look_everything_up_in_the_configuration(self, tmp_path):
        row = "a\ticml2014_table1\tnips\tMC2\tmc2\tgibbs\tyear+author\tkernel=blocked iterations=7\n"
        other = "b\ticml2014_table1\tpnas\tMC2\tmc2\tgibbs\t\t\n"
        runs = experiments(tmp_path, HEADER + row + other)
        assert list(runs) == ["a"]  # pnas is not chosen
        fit = runs["a"]["fit"]
        assert fit["settings"] == {"kernel": "blocked"}
        assert fit["contexts"] == {name: CONFIG["contexts"][name] for name in ("year", "author")}
        assert (fit["iterations"], fit["thin"]) == (7, CONFIG["fit"]["nips"]["thin"])

    def test_a_row_with_an_unread_context_is_left_out_and_says_why(self, tmp_path):
        row = "{}\tt\twikipedia\tSVI\tmc2\tsvi\t{}\t\n"
        runs = experiments(tmp_path, HEADER + row.format("a", "writer") + row.format("b", ""), ["wikipedia"])
        config = CONFIG | {"leave_out": []}
        assert configuration.leave_out_runs(runs, config) == (runs, [])  # drawn corpora have all contexts
        corpus = CONFIG["corpora"]["wikipedia"] | {"source": "real excerpt", "contexts": ["category"]}
        changed = config | {"corpora": CONFIG["corpora"] | {"wikipedia": corpus}}
        kept, reasons = configuration.leave_out_runs(runs, changed)
        assert list(kept) == ["b"]
        assert reasons == ["a is left out: corpora.wikipedia has no context 'writer'; it has: category"]
        assert configuration.leave_out_runs(runs, CONFIG | {"leave_out": ["b*", "*-none"]}) == ({"a": runs["a"]}, [])
        assert configuration.leave_out_runs(runs, CONFIG | {"leave_out": ["b"]}) == ({"a": runs["a"]}, [])
        with pytest.raises(ValueError, match="leave_out: 'c' is not known"):
            configuration.leave_out_runs(runs, CONFIG | {"leave_out": ["c"]})

    def test_variants_of_an_engine_differ_in_choices_not_in_numbers(self, tmp_path):
        row = "{}\tt\tnips\tm\t{}\t{}\t\t{}\n"
        of_gibbs = (("mc2", ""), ("mc2", "start_topics=3"), ("mc2", "kernel=blocked"), ("hdp", ""))
        rows = [row.format(f"gibbs-{n}", model, "gibbs", settings) for n, (model, settings) in enumerate(of_gibbs)]
        runs = experiments(tmp_path, "".join([HEADER, *rows, row.format("fastex", "mixture", "fastex", "")]))
        found = configuration.variants(runs, "gibbs")
        assert found == [{"model": "mc2"}, {"model": "mc2", "kernel": "blocked"}, {"model": "hdp"}]


class TestCodeDigest:
    @pytest.mark.slow
    def test_follows_imports_and_nothing_else(self, tmp_path):
        """Digests of the same modules in a copy of the package, one file of it edited after the other."""
        packages = Path(code_digest.__file__).parents[1]
        for name in ("mc2core", "mc2papers"):
            shutil.copytree(packages / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        # left by a version in which it was a folder
        (tmp_path / "mc2papers/configuration/__pycache__").mkdir(parents=True)
        tables = sorted({target.module for target in targets.registry().values()})
        others = ["inference.running.files", "inference.gibbs.engine", "inference.fastex.engine", "explore.describe"]
        modules = [*tables, *(f"mc2core.{name}" for name in others)]
        code = "import sys; from mc2papers.code_digest import code_digest; print(*map(code_digest, sys.argv[1:]))"

        def digests():
            command = [sys.executable, "-c", code, *modules]
            process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
            return dict(zip(modules, process.stdout.split(), strict=True))

        def changed_by_an_edit_of(name):
            before = digests()
            with (tmp_path / name).open("a") as file:
                file.write("\n")
            after = digests()
            return {one for one in modules if before[one] != after[one]}

        assert changed_by_an_edit_of("mc2papers/configuration.py") == set()
        through_catalogue = {f"mc2papers.icml2014.figure{number}" for number in (3, 4, 6)}
        by_records = changed_by_an_edit_of("mc2core/base/records.py")
        through_tables = {"mc2core.explore.describe"}  # texts and names may be given as tables
        figures = {"mc2papers.nips2012.figure1"}
        assert by_records == through_catalogue | through_tables | figures
        assert changed_by_an_edit_of("mc2core/explore/assets/html_report.css") == {"mc2core.explore.describe"}
        by_storage = changed_by_an_edit_of("mc2core/base/storage.py")
        assert by_storage >= {"mc2core.inference.running.files", "mc2core.inference.gibbs.engine"}
        diagrams = {"mc2papers.icml2014.figure1", "mc2papers.uai2016.figure1", "mc2papers.uai2016.figure2"}
        assert changed_by_an_edit_of("mc2papers/report/diagrams.py") == diagrams  # imported inside a function
        # the registry loads engines by name: a rule adds the one it uses
        assert changed_by_an_edit_of("mc2core/inference/gibbs/engine.py") == {"mc2core.inference.gibbs.engine"}
        with pytest.raises(ValueError, match=r"'mc2core\.nothing' is not there"):
            code_digest.code_digest("mc2core.nothing")


class TestDryRun:
    @pytest.mark.workflow
    @pytest.mark.parametrize("name", first(["config.yaml", "test.yaml", "paper.yaml"]))
    def test_dry_run_of_everything_on_every_configuration(self, checkout, name):
        code, output = snakemake(checkout, "-n", "--configfile", f"config/{name}")
        assert code == 0, output
        planned = jobs(output)
        assert planned.keys() >= TARGETS | {"all", "report_html", "reproduction_report", "claims", "warm_kernels"}
        assert ("fetch" in planned) == (name == "paper.yaml")
        recorded = pd.read_csv(ROOT / "src/mc2papers/report/assets/recorded_times.csv", index_col="configuration")
        assert name not in recorded.index or recorded.loc[name, "jobs"] == planned["total"]

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_the_readme_counts_the_jobs_of_table_1_on_real_papers(self, checkout):
        change = ("--configfile", "config/nips.yaml", "--config", "datasets=nips")
        code, output = snakemake(checkout, "-n", "icml2014_table1", *change)
        assert code == 0, output
        recorded = pd.read_csv(ROOT / "src/mc2papers/report/assets/recorded_times.csv", index_col="configuration")
        assert jobs(output)["total"] == recorded.loc["nips.yaml", "jobs"]

    @pytest.mark.workflow
    def test_dry_run_of_each_target_by_name_and_by_paper(self, checkout):
        code, output = snakemake(checkout, "-n", *sorted(TARGETS))
        assert code == 0, output
        assert jobs(output).keys() >= TARGETS
        code, output = snakemake(checkout, "-n", "uai2016")
        assert code == 0, output
        spark = {} if missing() else {"fit_aua_lda": 1, "score": 1}
        made = ("figure1", "figure2", "figure3", "table1", "table2", "table3", "table4", "running_time")
        assert grouped(jobs(output)) == spark | dict.fromkeys((f"uai2016_{one}" for one in made), 1) | {
            "corpus": 5, "warm_kernels": 2, "fit_...": 11, "curves": 2, "speed": 1, "batches": 5,
            "epochs": 1 if missing() else 2, "uai2016": 1, "total": 36 + len(spark) + (not missing()),
        }  # fmt: skip
        code, output = snakemake(checkout, "-n", "nips2012", "--config", "datasets=w100")
        assert code == 0, output
        planned = jobs(output)
        assert grouped(planned)["fit_..."] == 2
        assert (planned["corpus"], planned["nips2012_times"], planned["warm_kernels"]) == (1, 1, 2)
        # more seeds of each row than of other targets
        several = "icml2014_figure2", "results/scores/letters/5.json", "nips2012_figure1"
        code, output = snakemake(checkout, "-n", *several)
        assert code == 0, output
        planned = jobs(output)
        assert (planned["fit_letters"], planned["fit_letters_interleaved"], planned["score"]) == (1, 1, 1)
        assert grouped(planned)["fit_..."] == 5
        assert "results/fits/letters-lda/5/posterior.npz" in output
        assert "results/fits/w100-balanced/7/trace.tsv" in output
        assert "results/fits/w100-balanced/8/" not in output

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_a_target_needs_no_fits_of_other_targets(self, checkout):
        code, output = snakemake(checkout, "-n", "icml2014_table3")
        assert code == 0, output
        fitted = [run for runs in re.findall(r": Fitting (.*)$", output, re.M) for run in runs.split(", ")]
        some = {f"nuswide-tag-missing{percent}" for percent in (25, 50, 75)}
        assert set(fitted) == some | {"nuswide-tag", "nuswide-words", "nuswide-tag-document-level"}

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_datasets_restrict_a_configuration(self, checkout):
        of_paper = "--configfile", "config/paper.yaml", "--config", "datasets=nips", "--"
        code, output = snakemake(checkout, "-n", *of_paper, "icml2014_table1")
        assert code == 0, output
        seeds = yaml.safe_load((ROOT / "config/paper.yaml").read_text())["seeds"]
        assert jobs(output) == {
            "fetch": 1, "corpus": 1, "warm_kernels": 1, "fit": 7 * seeds, "fit_with_snapshots": seeds,
            "score": 8 * seeds, "icml2014_table1": 1, "total": 16 * seeds + 4,
        }  # fmt: skip
        code, output = snakemake(checkout, "-n", "--config", "datasets=nips", "--", "icml2014_figure2")
        assert code != 0
        assert "icml2014_figure2 has no run in config/experiments.tsv on the datasets of this configuration" in output

    @pytest.mark.workflow
    def test_broken_config_stops_at_once_with_one_sentence(self, checkout):
        code, output = snakemake(checkout, "-n", "--config", "datasets=nisp")
        assert code == 1
        assert "datasets: 'nisp' is not known; did you mean 'nips'?" in output
        assert "Traceback" not in output

    @pytest.mark.workflow
    def test_lint_finds_nothing(self, checkout):
        code, output = snakemake(checkout, "--lint")
        assert code == 0, output

    @pytest.mark.workflow
    @pytest.mark.slow
    @pytest.mark.needs("browser")
    def test_snakemakes_report_shows_a_figure_with_title_and_caption(self, checkout, opened):
        for options in ((), ("--report", "report.html")):
            code, output = snakemake(checkout, "uai2016_figure1", *options)
            assert code == 0, output
        known = "cdn.tailwindcss.com should not be used"  # of every report of Snakemake
        with opened(checkout / "report.html", ready='text="Results"', known=known) as page:
            assert "MC2 (Nguyen et al., ICML 2014)" in page.inner_text("body")
            page.click('text="Results"')
            row = page.locator("tr", has_text="figure 1")
            assert "plate diagram" in row.inner_text()
            row.locator("[iconname=eye]").click()
            page.wait_for_function("[...document.images].some(one => one.naturalWidth > 300)")
            row.locator("[iconname=information-circle]").click()
            page.wait_for_selector("text=MC2 as documents are generated")


@pytest.fixture
def run_to_the_end(tmp_path_factory):
    """Where the test configuration has been run: a checkout of our own, or ``MC2_TEST_CONFIGURATION``, in which that
    was just done."""
    if made := os.environ.get("MC2_TEST_CONFIGURATION"):
        return Path(made)
    folder = tmp_path_factory.mktemp("run")
    copy_checkout(folder)
    code, output = snakemake(folder, *TEST_CONFIGURATION)
    assert code == 0, output
    return folder


class TestRun:
    @pytest.mark.slow
    @pytest.mark.workflow
    def test_a_corpus_of_ones_own_ends_in_its_page_beside_the_papers(self, checkout):
        (checkout / "my.csv").write_text("text,score,tags\n" + "red lake,1,a; b\nblue sea,2.5,b\n" * 10)
        columns = {"file": "my.csv", "text": "text", "contexts": ["score:number", "tags:bag"]}
        fit = {"iterations": 4, "burn_in": 2, "thin": 1}
        mine = {"datasets": ["mine"], "seeds": 1, "corpora": {"mine": columns}, "fit": {"mine": fit}}
        (checkout / "my.yaml").write_text(yaml.safe_dump(mine))
        earlier = [checkout / "results" / name for name in ("index.html", "report.html", "claims.md")]
        earlier[0].parent.mkdir()
        for path in earlier:
            path.write_text("of an earlier run")
        code, output = snakemake(checkout, "--configfile", "my.yaml")
        assert code == 0, output
        assert "score" in (checkout / "results/explore/mine/index.html").read_text()
        assert [path.read_text() for path in earlier] == ["of an earlier run"] * 3

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_test_configuration_runs_whole_then_has_nothing_to_do(self, run_to_the_end, checkout):
        results = run_to_the_end / "results"
        for target in TARGETS:
            for file in targets.registry()[target].outputs(str(results)).values():
                assert Path(file).stat().st_size > 100, file
        table = pd.read_csv(results / "icml2014/icml2014_table1.csv")
        ours = table[table["method"] == "MC2"]
        assert ours.groupby("dataset").size().to_dict() == {"NIPS": 4, "PNAS": 2}
        assert (ours["seeds"] == 2).all()
        assert ours["perplexity"].between(1, 5000).all()
        assert dict(zip(table["method"], table["estimator"], strict=True))["HDP"] == "left_to_right"
        assert (ours["source"] == "simulated").all()
        claims = pd.read_csv(results / "claims.csv")
        assert set(claims["target"]) == {
            "icml2014_figure2", "icml2014_figure4", "icml2014_figure5", "icml2014_figure6", "icml2014_figure7",
            "icml2014_table1", "icml2014_table2", "icml2014_table3", "uai2016_figure3", "uai2016_running_time",
            "uai2016_table1", "uai2016_table2", "uai2016_table3", "uai2016_table4", "nips2012_figure1",
            "nips2012_table1", "nips2012_table2",
        }  # fmt: skip
        bursty = "simulated (correlated topics, bursty words)"
        simulated = {bursty, "simulated (mixture of multinomials)", "drawn as in the paper (MC2)"}
        assert set(claims["data"]) == simulated
        judged = claims[~claims["verdict"].isin(["precondition not met", "not run"])]
        reasons = r"95% .* to |no interval|fewer than the required 5$|measured on the real papers$"
        assert judged["reason"].str.contains(reasons).all()
        named = (
            "MC2 with (?:tags|MeSH|writer|products)|contexts gain|50% missing|than with none|timestamp|every context"
        )
        of_contexts = judged["claim"].str.contains(named)
        assert of_contexts.sum() >= 10
        by_level = of_contexts & ~judged["claim"].str.contains("degrade gracefully")
        assert set(judged.loc[by_level, "verdict"]) == {"not testable on these data"}
        is_about_mc2 = judged["claim"].str.contains("MC2 without (?:contexts|tags) has a lower perplexity than HDP")
        about_mc2 = judged[is_about_mc2 & (judged["whose"] == "paper")]
        assert len(about_mc2) == 3
        assert "not testable on these data" not in set(about_mc2["verdict"])  # MC2 has drawn none of these data
        agreement = pd.read_csv(results / "icml2014/icml2014_figure5.csv", keep_default_na=False)
        assert set(agreement["method"]) == {"MC2", DOCUMENT_LEVEL, "HDP + AP", "AP", "K-means", "NMF"}
        by_nmf = agreement.loc[agreement["method"] == "NMF", "clusterings"]
        assert set(by_nmf) == {4}  # two numbers of clusters, two seeds
        assert agreement["mean"].between(0, 1).all()
        images = pd.read_csv(results / "icml2014/icml2014_table2.csv")
        unigrams = images["method"] == "unigrams"
        assert images["perplexity"].notna().all()
        assert (images["perplexity_sd"].isna() == unigrams).all()
        assert images.loc[images["paper_perplexity"].isna(), "method"].tolist() == [DOCUMENT_LEVEL, "unigrams"]
        assert images["perplexity"].between(1, 500).all()
        missing = pd.read_csv(results / "icml2014/icml2014_table3.csv")
        assert missing["missing_percent"].tolist() == [0, 25, 50, 75, 100, 0]
        assert missing["method"].tolist() == ["MC2"] * 5 + [DOCUMENT_LEVEL]
        assert (missing["seeds"] == 2).all()
        fewer = storage.read_json(results / "fits/nuswide-tag-missing50/1/provenance.json")
        assert fewer["missing"] == 0.5
        large = pd.read_csv(results / "uai2016/uai2016_table2.csv")
        assert set(large.dropna(subset="perplexity")["dataset"]) == {"Wikipedia", "PubMed", "AUA"}
        assert large["perplexity"].dropna().between(1, 10_000).all()
        passed = pd.read_csv(results / "uai2016/uai2016_table3.csv")
        assert set(passed["context_available_percent"]) == {0, 1}
        assert passed["enmi"].between(0, 1).all()
        shares = pd.read_csv(results / "uai2016/uai2016_table4.csv")
        assert shares["context_available_percent"].tolist() == [0, 1, 100]
        assert (shares["seeds"] == 2).all()
        drawn = pd.read_csv(results / "icml2014/icml2014_figure6.csv")
        assert set(drawn["cluster"]) == {1, 2, 3}
        curves = pd.read_csv(results / "nips2012/nips2012_figure1.csv")
        assert sorted(curves.loc[curves["method"] == "FastEx", "bits"].unique()) == [8, 16, 32, 64, 128]
        assert curves["method"].nunique() == 7
        assert (curves["vi_bits"].between(0, 15) & (curves["seconds"] > 0)).all()
        speedups = pd.read_csv(results / "nips2012/nips2012_table2.csv")
        assert set(speedups["dataset"]) == {"W100", "W1000", "NIPS"}
        assert (speedups["source"] == "simulated").all()
        times = pd.read_csv(results / "nips2012/nips2012_table1.csv")
        assert times["microseconds_per_document"].between(0.01, 1e5).all()
        assert set(times["part"]) == {"proposal", "total"}
        assert not list((results / "checkpoints").glob("*"))
        page = (results / "report.html").read_text()
        assert all(f"{target}.png" in page for target in TARGETS if "_figure" in target)
        assert "icml2014_table1.html" in page
        page = (results / "index.html").read_text(encoding="utf-8")
        assert all(f'<details class="card" id="{target}">' in page for target in TARGETS)
        claims = pd.read_csv(results / "claims.csv")
        all_claims = page.partition('<section id="claims-of-the-papers">')[2]
        assert all_claims.count("<tr data-verdict=") == len(claims) > 10
        # every job but those that are not done while the page is written
        logs = {str(path.relative_to(results / "logs").with_suffix("")) for path in (results / "logs").rglob("*.log")}
        assert {*re.findall(r"<title>(\S+): [\d.]+ s</title>", page), "reproduction_report", "report"} == logs
        links = re.findall(r'href="([^"#:]+)"', page)
        assert all((results / link).is_file() for link in links)

        code, output = snakemake(run_to_the_end, "-n", *TEST_CONFIGURATION)
        assert code == 0, output
        assert "Nothing to be done" in output

        # the code of the engines is a parameter of the fits: they run again when it changes, and all that follows
        before = jobs(snakemake(checkout, "-n", *TEST_CONFIGURATION)[1])
        for part in ("results", ".snakemake"):
            shutil.copytree(run_to_the_end / part, checkout / part, dirs_exist_ok=True)
        rules = checkout / "workflow/rules/common.smk"
        text, replaced = re.subn(r"return code_digest\((?:[^()]|\([^()]*\))*\)", 'return "another"', rules.read_text())
        assert replaced == 2
        rules.write_text(text)
        code, output = snakemake(checkout, "-n", *TEST_CONFIGURATION)
        assert code == 0, output
        # all of them, though the job that compiles their kernels runs again as well
        assert grouped(jobs(output))["fit_..."] == grouped(before)["fit_..."]
        assert jobs(output).keys() >= {"warm_kernels", "icml2014_figure5", "report_html"}
        assert "corpus" not in jobs(output)
