"""Configurations and experiments tables that a job could only fail with are refused before the first job, each in one
sentence."""

import re
import subprocess
import sys

import pytest
import yaml
from helpers.configurations import SCHEMAS, experiments
from helpers.configurations import default_configuration as config
from helpers.workflow_calls import ROOT, snakemake

from mc2core.base.settings import parse_settings
from mc2core.corpus import datasheet
from mc2core.inference import registry
from mc2core.inference.registry import settings_of
from mc2papers import configuration
from mc2papers.datasets.download import fetch
from mc2papers.icml2014 import perplexity_rows
from mc2papers.report.captions import DOCUMENT_LEVEL

LABELLED = ("labelme", "uiucsports", "ohsumed", "stateunion")
HEADER = "run\ttargets\tdataset\tmethod\tmodel\tengine\tcontexts\tsettings\n"


def table(tmp_path, content):
    path = tmp_path / "experiments.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def row(**fields):
    model = {"gibbs": "mc2", "svi": "mc2", "fastex": "mixture"}.get(fields.get("engine", "gibbs"), "")
    usual = {"run": "a", "targets": "fits", "dataset": "nips", "method": "MC2", "model": model, "engine": "gibbs"}
    return "\t".join({**usual, "contexts": "", "settings": "", **fields}.values()) + "\n"


def whole_settings(run):
    """Settings of a run of an engine, with the defaults."""
    fit = run["fit"]
    return settings_of(fit["model"], configuration.engine_of(fit["engine"])) | fit["settings"]


class TestRowsOfThePapers:
    def test_the_study_of_choices_has_a_length_of_its_own(self):
        """Its rows with a length of their own keep it, and the rows of table 1 have the length of the dataset."""
        study = config()["table1_sensitivity"] | {"length": {"iterations": 7, "burn_in": 3, "thin": 2}}
        runs = experiments(config(table1_sensitivity=study), datasets=["nips"])
        lengths = [
            [runs[run]["fit"][name] for name in ("iterations", "burn_in", "thin")]
            for run in ("nips-choice-v-1", "nips-choice-hdp", "nips-choice-80-sweeps", "nips-words")
        ]
        assert lengths == [[7, 3, 2], [7, 3, 2], [80, 40, 8], [60, 30, 3]]

    def test_configured_bags_keep_the_concentration_of_their_figures(self):
        contexts = config()["contexts"]
        for name in ("author", "title", "tag", "writer", "mesh", "product"):
            assert contexts[name] == {"family": "dirichlet", "concentration": 0.1}, name

    def test_runs_of_mixtures_state_their_priors(self):
        """Their figures do not move if the defaults of the model do."""
        rows = [line.split("\t") for line in (ROOT / "config/experiments.tsv").read_text(encoding="utf-8").splitlines()]
        of_mixtures = [row[7] for row in rows if row[4] == "mixture"]
        assert len(of_mixtures) == 47
        assert all("topic_word_prior=" in row and " weight_prior=" in row for row in of_mixtures)

    def test_nptot_meets_those_that_the_paper_prints(self):
        runs = experiments(config(), datasets=("nips", "pnas"))
        found = {
            (run["method"], perplexity_rows.FEATURES[tuple(run["fit"]["contexts"])], run["dataset"].upper())
            for run in runs.values()
            if run["fit"].get("model") == "nptot"
        }
        with open(ROOT / "workflow/paper/icml2014_table1.csv", encoding="utf-8") as stream:
            printed = {tuple(line.split(",")[:3]) for line in stream}
        assert found == {one for one in printed if one[0] == "npTOT"}
        assert len(found) == 2

    def test_mc2_is_as_printed_with_one_document_level_row(self):
        runs = experiments(config())
        studies = {"icml2014_figure2_sensitivity", "icml2014_table1_sensitivity"}
        runs = {name: run for name, run in runs.items() if not set(run["targets"]) <= studies}
        of_models = {name: run for name, run in runs.items() if run["fit"]["engine"] in configuration.ENGINES}
        settings = {name: whole_settings(run) for name, run in of_models.items()}
        own = {name for name in settings if re.search(r"document level.* \(ours", runs[name]["method"])}
        assert {name for name, one in settings.items() if one.get("document_level")} == own
        assert {settings[name]["document_concentration"] for name in own} == {"learn"}
        by_gibbs = [runs[name] | {"name": name} for name in own if runs[name]["fit"]["engine"] == "gibbs"]
        of_papers = [run for run in by_gibbs if run["method"] == DOCUMENT_LEVEL]
        of_papers = [run for run in of_papers if not {"labelled_table1", "labelled_contexts_help"} & {*run["targets"]}]
        assert of_papers
        assert not any(settings[run["name"]]["burstiness"] for run in of_papers)  # one extension at a time
        assert settings["nips-repeats"]["burstiness"] is not False
        for target, datasets in {
            "icml2014_table1": ["nips", "pnas"],
            "icml2014_table2": ["nuswide"],
            "icml2014_table3": ["nuswide"],
            "icml2014_figure5": ["nuswide"],
            "uai2016_table2": ["wikipedia", "pubmed", "aua"],
        }.items():
            beside = [name for name in own - {"nips-repeats"} if target in runs[name]["targets"]]
            assert {runs[name]["method"] for name in beside} == {DOCUMENT_LEVEL}
            assert sorted(runs[name]["dataset"] for name in beside) == sorted(datasets)
            for name in beside:
                # the same fit as a row of MC2's but for this setting, so on the same split, seeds and samples
                of_target = [one for one in runs.values() if target in one["targets"]]
                printed = [one["fit"] for one in of_target if one["method"] != DOCUMENT_LEVEL]
                fit = runs[name]["fit"]
                if fit["engine"] == "svi":  # without tables and at our own rates, but with the same truncations
                    assert (fit["settings"]["max_clusters"], fit["settings"]["max_topics"]) == (40, 120)
                    assert fit | {"settings": None} in [one | {"settings": None} for one in printed]
                    continue
                as_printed = {key: value for key, value in fit["settings"].items() if key != "burstiness"}
                assert fit | {"settings": as_printed | {"document_level": False}} in printed


def checked(tmp_path, text, **changes):
    """All that Snakemake's main process does to the experiments table."""
    path, configuration_of = table(tmp_path, text), config(**changes)
    runs = experiments(configuration_of, path)
    configuration.check_runs(path, runs, configuration_of, ["icml2014_table1"])
    return runs


def refused(message):
    return pytest.raises(ValueError, match=re.escape(message))


def left_out(chosen, data_folder, fetched, **changes):
    files = configuration.read_table(ROOT / "config/datasets.tsv", SCHEMAS["datasets"], key="file")
    whole = config(data_folder=str(data_folder), **changes)
    return configuration.leave_out(whole, SCHEMAS["config"], files, chosen, fetched)


class TestContexts:
    def test_a_star_stands_for_all_contexts_of_an_own_corpus(self, tmp_path):
        columns = ["when=Published:date", "score:number", "author:bag", "Tag1:counts", "title:text", "tag:number"]
        own = config()["corpora"]["mine"] | {"contexts": columns}
        changes = {"corpora": config()["corpora"] | {"mine": own}}
        (run,) = checked(tmp_path, HEADER + row(dataset="mine", contexts="*"), **changes).values()
        bag = {"family": "dirichlet"}
        assert run["fit"]["contexts"] == {
            "when": {"family": "normal_gamma"},
            "score": {"family": "normal_gamma"},
            "author": bag | {"concentration": 0.1},  # the configuration has a prior for this name and family
            "Tag1": bag,
            "title": bag | {"concentration": 0.1},
            "tag": {"family": "normal_gamma"},  # and here for another family
        }
        (some,) = checked(tmp_path, HEADER + row(dataset="mine", contexts="score+Tag1"), **changes).values()
        assert list(some["fit"]["contexts"]) == ["score", "Tag1"]
        changes["corpora"]["mine"] = own | {"contexts": []}
        (none,) = checked(tmp_path, HEADER + row(dataset="mine", contexts="*"), **changes).values()
        assert none["fit"]["contexts"] == {}
        with refused("run 'a': context '*' is not known"):
            checked(tmp_path, HEADER + row(contexts="*"))

    def test_contexts_of_a_dataset_follow_its_source(self, tmp_path):
        by_title = HEADER + row(contexts="title")
        checked(tmp_path, by_title)
        by_mesh = HEADER + row(dataset="pubmed", contexts="mesh")
        checked(tmp_path, by_mesh)
        corpora = config()["corpora"]
        dated = corpora | {"pubmed": corpora["pubmed"] | {"source": "real", "contexts": ["year"]}}
        with refused("context 'mesh' is not in corpora.pubmed, which has ['year']"):
            checked(tmp_path, by_mesh, corpora=dated)
        families = config()["contexts"] | {"author": {"family": "normal_gamma"}}
        why = "context 'author' has the family normal_gamma, but it is of kind 'bag' in corpora.nips, which takes"
        with refused(why):
            checked(tmp_path, HEADER + row(contexts="author"), contexts=families)

    def test_contexts_are_those_that_each_dataset_has(self, tmp_path):
        from mc2papers.datasets.catalogue import DATASETS, contexts_of, prepare

        for name in [one for one, dataset in DATASETS.items() if dataset.simulate]:
            settings = {"n_documents": 12} if name == "letters" else {"scale": 0.0005}
            about = prepare(name, tmp_path / name, source="simulated", settings=settings)
            assert sorted(contexts_of(name, {"source": "simulated"})) == about["contexts"]
        assert [contexts_of(name, {"source": "real"}) for name in LABELLED] == [{}, {}, {}, {"year": "number"}]

    def test_a_row_may_ask_for_missing_ones(self, tmp_path):
        text = HEADER + row(contexts="year", settings="missing=0.25") + row(run="b", contexts="year")
        runs = checked(tmp_path, text)
        assert runs["a"]["fit"]["missing"] == 0.25
        assert "missing" not in runs["b"]["fit"]
        for wrong in ("1.5", "-0.1", "half", "true"):
            with refused("run 'a': share of documents without contexts (missing) is "):
                checked(tmp_path, HEADER + row(contexts="year", settings=f"missing={wrong}"))

    def test_a_row_may_ask_for_chains(self, tmp_path):
        runs = checked(tmp_path, HEADER + row(settings="chains=3") + row(run="b"))
        assert runs["a"]["fit"]["chains"] == 3
        assert "chains" not in runs["b"]["fit"]
        for wrong in ("0", "1.5", "few"):
            with refused("run 'a': chains is "):
                checked(tmp_path, HEADER + row(settings=f"chains={wrong}"))
        with refused("run 'a': "):
            checked(tmp_path, HEADER + row(model="", engine="kmeans", settings="chains=3"))


class TestLeftOut:
    def test_datasets_whose_files_are_not_at_hand(self, tmp_path):
        data_folder, fetched = tmp_path / "data/labelled", tmp_path / "fetched"
        lacking = "no local data folder (--config data_folder=FOLDER) has"
        all_names = f"{', '.join(LABELLED)} are left out: {lacking} their files"
        assert left_out(["nips", *LABELLED], "", fetched) == (["nips"], [all_names])
        kept, reasons = left_out(["nips", *LABELLED], tmp_path, fetched)
        assert kept == ["nips"]
        assert [reason.partition(" ")[0] for reason in reasons] == list(LABELLED)
        file = "labelled/ohsumed_single_23.tar.gz"
        assert reasons[2] == f"ohsumed is left out: {lacking} {file}; it has no official address"
        data_folder.mkdir(parents=True)
        for file in ("images.tgz", "uiuc-sports-info.txt"):
            (data_folder / file).touch()
        kept, reasons = left_out(["nips", *LABELLED], data_folder.parent, fetched)
        assert kept == ["nips", "labelme"]
        assert "has labelled/uiuc-sports-annotations.txt; 'snakemake " in reasons[0]
        (fetched / "uiucsports").mkdir(parents=True)
        (fetched / "uiucsports/uiuc-sports-annotations.txt").touch()
        assert left_out(["nips", *LABELLED], data_folder.parent, fetched)[0] == ["nips", "labelme", "uiucsports"]

    def test_datasets_without_address_or_files_are_left_out(self, tmp_path):
        real = configuration.read_yaml(ROOT / "config/real.yaml")
        corpora = config()["corpora"]
        changes = {name: corpora[name] | real["corpora"][name] for name in ("nips", "pubmed", "wikipedia")}
        kept, (reason,) = left_out(list(changes), "", tmp_path, corpora=corpora | changes)
        assert kept == ["nips"]
        assert reason.startswith("wikipedia, pubmed are left out: no local data folder")
        for name in changes["pubmed"]["files"]:
            (tmp_path / "pubmed").mkdir(exist_ok=True)
            (tmp_path / "pubmed" / name).touch()
        assert left_out(list(changes), "", tmp_path, corpora=corpora | changes)[0] == ["nips", "pubmed"]

    def test_a_run_of_which_no_dataset_remains_is_refused(self, tmp_path):
        with refused("configuration: no dataset is left; ohsumed is left out: no local data folder"):
            left_out(["ohsumed"], "", tmp_path)

    @pytest.mark.workflow
    def test_a_dry_run_says_so_and_goes_through_with_the_rest(self, checkout):
        code, output = snakemake(checkout, "-n", "corpora")
        assert code == 0, output
        assert len(re.findall(f"{', '.join(LABELLED)}.* are left out: no local data folder", output)) == 1
        assert "results/corpora/ohsumed" not in output
        folder = checkout / "data/labelled"
        folder.mkdir(parents=True)
        for file in ("ohsumed_single_23.tar.gz", "state_union.zip"):
            (folder / file).touch()
        chosen = "data_folder=data", "datasets=ohsumed,stateunion"
        code, output = snakemake(checkout, "-n", "corpora", "--config", *chosen)
        assert code == 0, output
        assert "is left out" not in output
        assert output.count("Preparing corpus ") == 2

    def test_runs_on_spark_with_what_is_missing(self, tmp_path):
        rows = row(run="a") + row(run="b", engine="mllib_lda", dataset="aua")
        rows += row(run="c", engine="svi", settings="document_level=false n_shards=2")
        runs = checked(tmp_path, HEADER + rows + row(run="d", engine="mllib_lda", dataset="pubmed"))
        assert runs["c"]["fit"]["spark"] == {}
        kept, reasons = configuration.leave_out_spark(runs, config(), None)
        assert list(kept) == ["a", "b", "c"]
        assert reasons == ["d is left out: pubmed is not in table2.lda of the configuration"]
        kept, reasons = configuration.leave_out_spark(runs, config(), "Spark needs Java 17")
        assert list(kept) == ["a"]
        assert reasons[:2] == ["b is left out: Spark needs Java 17", "c is left out: Spark needs Java 17"]


ROLES = ("group", "table", "topic", "words", "document")
OF_WORDS = "uses words only; it cannot use context"
NUMBERS = "it must be a whole number or a list of different ones"
OF_KMEANS = "a setting of baseline 'kmeans' is 'iterations'; allowed: n_clusters, "


class TestRuns:
    def test_a_list_in_the_settings_may_have_blanks(self, tmp_path):
        settings = "n_neighbours=3 exact_sweeps=[1, 5] proposal=neighbours"
        runs = checked(tmp_path, HEADER + row(engine="fastex", settings=settings))
        assert runs["a"]["fit"]["settings"]["exact_sweeps"] == [1, 5]

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"settings": "start_topics=-20"}, "run 'a': start_topics is -20; it must be a whole number of at least"),
            ({"settings": "iterations=0"}, "run 'a': iterations is 0; it must be a whole number of at least 1"),
            ({"settings": "kernel=foo"}, "run 'a': kernel is 'foo'; allowed: collapsed, blocked, interleaved"),
            ({"settings": "burn_in=60"}, "run 'a': burn_in 60 and thin 3 leave no sample in 60 iterations"),
            ({"settings": 'concentration_priors={"grup":[1,1]}'}, f"'grup'; allowed: {', '.join(ROLES)}"),
            ({"engine": "fastex", "contexts": "year"}, f"model 'mixture' {OF_WORDS} 'year'"),
            ({"dataset": "letters", "contexts": "year"}, "'year' is not in corpora.letters, which has ['number']"),
            ({"dataset": "mine", "contexts": "title"}, "'title' is not in corpora.mine, which has []"),
            ({"contexts": "year+year"}, "run 'a': contexts 'year+year' name one twice"),
            ({"targets": "icml2014_tabel1"}, "target 'icml2014_tabel1' is not known; did you mean 'icml2014_table1'?"),
            ({"model": ""}, "run 'a': model is empty; engine 'gibbs' fits one"),
            ({"model": "mc3"}, "run 'a': model is 'mc3'; allowed: hdp, mc2, mixture, nptot; did you mean 'mc2'?"),
            ({"model": "mixture"}, "run 'a': Gibbs cannot fit mixture; it fits mc2, hdp, nptot"),
            ({"engine": "kmeans", "model": "mc2"}, "run 'a': engine 'kmeans' fits no model such as 'mc2'"),
            ({"engine": "gibs", "model": "mc2"}, "fits no model such as 'mc2'; did you mean 'gibbs'?"),
            ({"settings": "start_topic=3"}, "no setting 'start_topic'; did you mean 'start_topics'"),
            ({"engine": "kmeens"}, "run 'a': engine is 'kmeens'; allowed: fastex, gibbs, svi, uncollapsed, lda"),
            ({"engine": "kmeans", "settings": "n_clusters=[3,3]"}, f"n_clusters is [3, 3]; {NUMBERS}"),
            ({"engine": "kmeans", "settings": "iterations=3"}, OF_KMEANS),
            ({"engine": "lda", "contexts": "title"}, "run 'a': LDA clusters words only; it cannot use context 'title'"),
            ({"engine": "nmf", "contexts": "year"}, "run 'a': NMF takes contexts of counts, but 'year' is a number"),
            ({"engine": "kmeans", "settings": "of=b"}, "uses no model of another run, so of must be empty, not 'b'"),
            ({"engine": "hdp_affinity"}, "of is None; for HDP + AP, it must name a run on nips of the model hdp"),
            ({"method": "M\0C2"}, "line 2: method: 'M\\x00C2' holds the control character U+0000"),
            ({"run": '"a\n"'}, "line 3: run: 'a\\n' holds the control character U+000A"),
        ],
    )
    def test_a_doomed_one_is_refused(self, tmp_path, fields, message):
        with refused(message) as caught:
            checked(tmp_path, HEADER + row(**fields))
        assert "\n" not in str(caught.value)

    def test_a_baseline_that_clusters_by_a_model_names_an_hdp(self, tmp_path):
        hdp = row(run="hdp", model="hdp") + row(run="mc2")
        other = row(run="far", dataset="pnas", model="hdp")
        ap = row(run="ap", engine="hdp_affinity", settings="of={}")
        runs = checked(tmp_path, HEADER + hdp + other + ap.format("hdp"))
        assert runs["ap"]["fit"]["of"] == "hdp"
        assert "iterations" not in runs["ap"]["fit"]
        for wrong in ("mc2", "far", "ap", "nothing"):
            with refused(f"run 'ap': of is '{wrong}'; for HDP + AP, it must name a run on nips"):
                checked(tmp_path, HEADER + hdp + other + ap.format(wrong))
        with refused("of the model hdp: hdp"):
            checked(tmp_path, HEADER + hdp + ap.format("mc2"))
        level = row(run="cut", engine="cut", settings="of={}")
        years = row(run="years", contexts="year")
        assert checked(tmp_path, HEADER + hdp + level.format("mc2"))["cut"]["fit"]["of"] == "mc2"
        needed = "for the recommended cut, it must name a run on nips of the model mc2 or"
        for wrong in ("hdp", "years"):
            with refused(f"run 'cut': of is '{wrong}'; {needed}"):
                checked(tmp_path, HEADER + hdp + years + level.format(wrong))

    def test_the_configurations_of_the_checkout_are_accepted(self):
        for name in ("test.yaml", "paper.yaml", "printed.yaml", "nips.yaml", "real.yaml", "spark.yaml", "example.yaml"):
            whole = config()

            def update(old, new):
                for key, value in new.items():
                    old[key] = update(old.get(key, {}), value) if isinstance(value, dict) else value
                return old

            update(whole, configuration.read_yaml(ROOT / "config" / name))
            configuration.check(whole, SCHEMAS["config"], name)
            runs, _ = configuration.leave_out_runs(experiments(whole), whole)
            configuration.check_runs(name, runs, whole, {target for run in runs.values() for target in run["targets"]})

    def test_engines_are_built_without_compiling(self, tmp_path):
        script = (
            "import sys, numba.core.dispatcher as d\n"
            "compiled = []\n"
            "d.Dispatcher.compile = lambda self, sig: compiled.append(self)\n"
            "sys.path[:0] = [sys.argv[2], sys.argv[2] + '/mc2papers']\n"
            "import pathlib\nimport test_configuration\n"
            "runs = test_configuration.checked(pathlib.Path(sys.argv[1]), test_configuration.HEADER + ''.join(\n"
            "    test_configuration.row(run=name, engine=name) for name in ('gibbs', 'svi', 'fastex')))\n"
            "print(len(runs), len(compiled))\n"
        )
        command = [sys.executable, "-c", script, tmp_path, ROOT / "tests"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.stdout.split() == ["3", "0"], done.stderr


class TestSheet:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (HEADER, "experiments.tsv has no row below its header"),
            (b"", "column 'run' is missing"),
            (HEADER.encode("utf-16"), "experiments.tsv is UTF-16 text; UTF-8 is needed"),
            (HEADER.encode() + row(method="M\u00c9").encode("latin-1"), "experiments.tsv, line 2 is not UTF-8 text"),
            (HEADER + row(method='"MC2'), "experiments.tsv, line 2 is not CSV: unexpected end of data"),
            (HEADER + row(settings="iterations=[1"), "iterations is '[1'; it must be a number"),
            (HEADER.replace("method", "run"), "column 'run' is there twice"),
            (HEADER.replace("engine", "engin"), "column 'engin' is not known; did you mean 'engine'?"),
            (HEADER.replace("engine\t", ""), "column 'engine' is missing"),
            (HEADER + row()[1:].replace("\t", "", 1), "line 2 has 7 fields, but the header has 8"),
            (HEADER + row() * 2, "line 3: run 'a' is already used in line 2"),
            (HEADER + row(run="A b"), "line 2: run: 'A b' does not match"),
            (HEADER + row(dataset="nisp"), "run 'a': dataset 'nisp' is not known; did you mean 'nips'?"),
            (HEADER + row(contexts="yaer"), "context 'yaer' is not known; did you mean 'year'?"),
            (HEADER + row(settings="kernel"), "'kernel' must have the form name=value"),
            (HEADER + row(settings="thin=1 thin=2"), "'thin' is set twice"),
        ],
    )
    def test_one_that_is_none_is_refused(self, tmp_path, content, message):
        with refused(message):
            checked(tmp_path, content)

    def test_a_byte_order_mark_does_no_harm(self, tmp_path):
        assert list(checked(tmp_path, b"\xef\xbb\xbf" + (HEADER + row()).encode())) == ["a"]
        (tmp_path / "bom.yaml").write_bytes(b"\xef\xbb\xbfseeds: 1\n")
        assert configuration.read_yaml(tmp_path / "bom.yaml") == {"seeds": 1}

    def test_all_are_read_in_one_way(self, tmp_path):
        path = tmp_path / "table"
        for read in (fetch.read_catalogue, lambda path: datasheet.read_paper_counts(path, "nips")):
            for content, message in ((b"dataset\xff\n", "table, line 1 is not UTF-8"), (b'a,"b" c\n', None)):
                path.write_bytes(content.replace(b",", b"\t") if read is fetch.read_catalogue else content)
                with refused(message or "table, line 1 is not CSV"):
                    read(path)


def values(**changes):
    whole = configuration.with_numbers(config(**changes))
    configuration.check(whole, SCHEMAS["config"], "c")
    return whole


def nips(**changes):
    return {"corpora": config()["corpora"] | {"nips": config()["corpora"]["nips"] | changes}}


def own_configuration(checkout, **columns):
    """A configuration with a corpus of one's own in a folder, as an option of Snakemake."""
    (checkout / "mine.yaml").write_text(yaml.safe_dump({"datasets": ["mine"], "corpora": {"mine": columns}}))
    return ["--configfile", "mine.yaml"]


class TestSnakemake:
    @pytest.mark.workflow
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (None, "configuration: configuration.yaml is missing"),
            (b"seeds: 1\nseeds: 1\n", "the key 'seeds' is in line 1 and again in line 2"),
            (b"fit: {nips: {burn_in: 60}}\n", "run 'nips-hdp': burn_in 60 and thin 3 leave no sample"),
        ],
    )
    def test_a_doomed_configuration_stops_a_dry_run(self, checkout, content, message):
        if content is not None:
            (checkout / "configuration.yaml").write_bytes(content)
        code, output = snakemake(checkout, "-n", "--configfile", "configuration.yaml")
        assert code == 1
        assert message in output
        assert "Traceback" not in output

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_results_of_a_file_do_not_pass_for_those_of_another_one(self, checkout):
        for name, last in (("a", "sea"), ("b", "hill")):
            (checkout / f"{name}.csv").write_text("paragraph\n" + f"red lake\nblue {last}\n" * 10)
        vocabulary = checkout / "results/corpora/mine/train/vocabulary.txt"
        # columns that the configuration does not name are not used, so that the table needs no others
        for name, words in (("a", ["blue", "lake", "red", "sea"]), ("b", ["blue", "hill", "lake", "red"])):
            own = own_configuration(checkout, file=f"{name}.csv", text="paragraph")
            code, output = snakemake(checkout, "corpora", *own)
            assert code == 0, output
            assert sorted(vocabulary.read_text().split()) == words

        for changes, message in (
            ({"file": "none.csv"}, "configuration: corpora, mine: file: 'none.csv' is not there (the folder of this"),
            ({"file": None}, "configuration: corpora, mine: file is null; the source 'own' needs its path"),
            ({"vocabulary": "words.txt"}, "configuration: corpora, mine: vocabulary: 'words.txt' is not there (the"),
        ):
            columns = {"file": "b.csv", "text": "paragraph"} | changes
            code, output = snakemake(checkout, "corpora", *own_configuration(checkout, **columns))
            assert code == 1
            assert message in output
            assert "Traceback" not in output

        code, output = snakemake(checkout, "corpora", *own_configuration(checkout, file="b.csv", text="paragraf"))
        assert code == 1
        assert "Error: b.csv has no column 'paragraf'; did you mean 'paragraph'?" in output
        assert "Traceback" not in output

    @pytest.mark.workflow
    @pytest.mark.slow
    def test_jobs_do_not_load_the_engines_again(self, checkout):
        """A job reads the configuration too; the checks that take a second are for the run that starts it."""
        (checkout / "workflow/rules/probe.smk").write_text(
            "rule probe:\n    output: 'probe.txt'\n    run:\n        import sys\n"
            "        open(output[0], 'w').write(str('mc2core.inference.registry' in sys.modules))\n"
        )
        with (checkout / "Snakefile").open("a") as stream:
            stream.write('\n\ninclude: "workflow/rules/probe.smk"\n')
        code, output = snakemake(checkout, "probe", "--configfile", "config/test.yaml")
        assert code == 0, output
        assert (checkout / "probe.txt").read_text() == "False"


class TestConfiguration:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"seeds": 10**400}, "c: seeds: 1000"),
            (nips(scale=float("nan")), "c: corpora, nips, scale: nan is not of type 'number' (Size of a simulated"),
            ({"contexts": {"year": {"family": "normal_gamma", "b0": float("inf")}}}, "b0: inf is not of type 'number'"),
            ({"data_folder": "a\0b"}, "c: data_folder: 'a\\x00b' holds the control character U+0000"),
            (nips(source="real\n"), "c: corpora, nips, source: 'real\\n' holds the control character"),
        ],
    )
    def test_values_that_slip_through_a_schema_are_refused(self, changes, message):
        with refused(message):
            values(**changes)

    def test_numbers_of_yaml_1_2_are_numbers(self):
        """Snakemake reads a configuration by YAML 1.1, where 1e-2 is text."""
        assert yaml.safe_load("1e-2") == "1e-2"
        whole = values(**nips(scale="1e-2"))
        assert whole["corpora"]["nips"]["scale"] == 0.01
        assert configuration.with_numbers({"a": ["1e1", "x1e1", "3", 2.5]}) == {"a": [10, "x1e1", "3", 2.5]}
        assert isinstance(values(seeds=3.0)["seeds"], int)
        assert whole["corpora"]["nips"]["source"] == config()["corpora"]["nips"]["source"]
        with refused("'1e-2x' is not of type 'number'"):
            values(**nips(scale="1e-2x"))

    @pytest.mark.parametrize("text", ["1e-2", "1E-2", "0.01", "1.e-2", "+1e-2", "10e-3", ".1e-1"])
    def test_settings_read_numbers_as_configurations_do(self, text):
        assert parse_settings([f"topic_word_prior={text}"], "--set") == {"topic_word_prior": 0.01}

    def test_dataset_twice(self):
        with refused("configuration: datasets: 'nips' is named twice"):
            configuration.choose_datasets(config(datasets="nips, letters,nips"))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"seeds: 1\nfit: {}\n\nseeds: 2\n", "p.yaml .*the key 'seeds' is in line 1 and again in line 4"),
            (b"fit:\n  nips:\n    thin: 1\n    thin: 2\n", "the key 'thin' is in line 3 and again in line 4"),
            (b"{a: 1, a: 1}", "the key 'a' is in line 1 and again in line 1"),
            (b"a: [1\n", r"p.yaml is not readable YAML: .* line 2, column 1"),
            (b"a: 1 # \xe9\n", "p.yaml, line 1 is not UTF-8 text: byte 0xe9 at place 8"),
            (b"a: 2020-13-45\n", "p.yaml is not readable YAML: month must be in 1..12"),
            (b"[" * 5000, "p.yaml is not readable YAML: maximum recursion depth exceeded"),
            (b"a: !!python/object:os.system x\n", "could not determine a constructor"),
            (b"a: &x {b: 1}\nc: {<<: *x, b: 2}\n", None),
        ],
    )  # fmt: skip
    def test_yaml_is_read_strictly(self, tmp_path, content, message):
        (tmp_path / "p.yaml").write_bytes(content)
        if message is None:
            assert configuration.read_yaml(tmp_path / "p.yaml")
            return
        with pytest.raises(ValueError, match=message) as caught:
            configuration.read_yaml(tmp_path / "p.yaml")
        assert "\n" not in str(caught.value)

    def test_a_file_without_keys_is_refused(self, tmp_path):
        (tmp_path / "c.yaml").touch()
        with pytest.raises(SystemExit, match=r"c\.yaml has no keys at its top level"):
            configuration.check_config_files(["--configfile", str(tmp_path / "c.yaml")])

    def test_an_outer_workflow_may_make_the_files_of_a_corpus(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        corpora = config()["corpora"]
        whole = {"corpora": corpora | {"aua": corpora["aua"] | {"source": "own", "folder": "log"}}}
        configuration.check_own_files(whole, ["aua"], must_exist=False)
        with refused("configuration: corpora, aua: folder: 'log' is not there"):
            configuration.check_own_files(whole, ["aua"])
        (tmp_path / "log").mkdir()
        configuration.check_own_files(whole, ["aua"])
        whole["corpora"]["aua"]["folder"] = None
        with refused("configuration: corpora, aua: folder is null; the source 'own' needs its path"):
            configuration.check_own_files(whole, ["aua"], must_exist=False)

    def test_a_word_the_corpus_lacks_is_named_before_the_first_job(self, tmp_path):
        config = {"figure4": {"word": "ferri"}}
        configuration.check_word(config, ["pnas"], tmp_path)
        (tmp_path / "pnas/train").mkdir(parents=True)
        (tmp_path / "pnas/train/vocabulary.txt").write_text("ferry\nlake\n")
        with pytest.raises(
            ValueError, match="figure4: word: 'ferri' is not in the vocabulary of pnas; did you mean 'ferry'"
        ):
            configuration.check_word(config, ["pnas"], tmp_path)
        configuration.check_word(config, ["nips"], tmp_path)
        configuration.check_word({"figure4": {"word": "lake"}}, ["pnas"], tmp_path)
        configuration.check_word({"figure4": {"word": None}}, ["pnas"], tmp_path)

    def test_engines_of_configurations_are_those_of_the_library(self):
        engines = {name: configuration.engine_of(name) for name in configuration.ENGINES}
        assert {name for name, one in engines.items() if one == name} == registry.ENGINES.keys()
        keep = {name for name, one in engines.items() if registry.engine_class(one).keeps_samples}
        assert keep == {*configuration.KEEP_SAMPLES}


def test_a_misspelt_target_and_a_missing_plugin_are_named():
    said = configuration.misspelt(["all", "results/a.csv", "icml2014_tabel1", "own"], ["all", "icml2014_table1"])
    assert said == ["there is no target 'icml2014_tabel1'; did you mean 'icml2014_table1'?"]
    with pytest.raises(SystemExit, match=r"executor no-such needs the optional packages .cluster.: pip install "):
        configuration.check_executor("no-such")
