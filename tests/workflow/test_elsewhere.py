"""The workflow from other folders and as a module of another one; its checkout's path has a space and an umlaut."""

import re
import shutil
import subprocess
import sys

import pytest
import yaml
from helpers.workflow_calls import ROOT, copy_checkout, snakemake

import mc2core

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
#: jobs of the default configuration, as a dry run in the checkout itself counts them
RULES = ("fit", "fit_nips_hdp", "corpus", "warm_kernels", "icml2014_table1", "report_html", "all")


@pytest.fixture
def there(tmp_path):
    """The checkout."""
    folder = tmp_path / "mein Ördner é"
    folder.mkdir()
    copy_checkout(folder)
    return folder


@pytest.fixture
def here(tmp_path):
    """Where results should go."""
    folder = tmp_path / "anderswo ü"
    folder.mkdir()
    return folder


def planned(output, prefix=""):
    """``{rule: jobs}`` of a dry run, for RULES."""
    table = output[output.rindex("\nJob stats:") :]
    counts = dict(line.split() for line in table.splitlines() if len(line.split()) == 2 and line.split()[1].isdigit())
    return {rule: int(counts.get(prefix + rule, 0)) for rule in RULES}


def files_below(folder):
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and ".snakemake" not in path.parts
    }


def outer(folder, text, config):
    """Another workflow: its file, its configuration with our configuration in it."""
    (folder / "Snakefile").write_text(text)
    (folder / "config").mkdir()
    (folder / "config/config.yaml").write_text(yaml.safe_dump(config))


MODULE = """
configfile: "config/config.yaml"


rule first:
    input:
        "parts/mc2/results/uai2016/uai2016_figure1.png",


module mc2:
    snakefile:
        {snakefile}
    prefix:
        "parts/mc2"
    config:
        config["mc2"]


use rule * from mc2 as mc2_*
"""


def test_the_default_profile_is_taken_from_anywhere(there, here):
    # "quiet: [host]" of the profile leaves out the line that names the host
    for more, is_taken in (([], True), (["--workflow-profile", "none"], False)):
        code, output = snakemake(here, "-n", "uai2016_figure1", "--snakefile", there / "Snakefile", *more)
        assert code == 0, output
        assert ("workflow specific profile" in output) == is_taken
        assert ("  Host: " in output) != is_taken


@pytest.fixture(scope="module")
def default_jobs(tmp_path_factory):
    """What the default configuration runs in a checkout, by the entry that others take as a module."""
    checkout = tmp_path_factory.mktemp("checkout")
    copy_checkout(checkout)
    code, output = snakemake(checkout, "-n", "--snakefile", "workflow/Snakefile")
    assert code == 0, output
    jobs = planned(output)
    assert jobs["all"] == jobs["report_html"] == jobs["icml2014_table1"] == 1
    # fits to small corpora are together
    assert jobs["fit"] == 0
    assert jobs["fit_nips_hdp"] == 1
    return jobs


def python_below(folder):
    """This Python environment as one inside a folder."""
    (folder / ".venv").symlink_to(sys.prefix)
    return folder / ".venv/bin/python"


def test_the_environments_path_may_have_blanks_and_quotes(tmp_path):
    there = tmp_path / "it's $HOME (1)"
    there.mkdir()
    copy_checkout(there)
    command = [python_below(there), "-m", "snakemake", "--cores", "1", "icml2014_figure1"]
    done = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (there / "results/icml2014/icml2014_figure1.png").stat().st_size > 1000


def test_runs_in_a_folder_without_any_configuration(there, here, tmp_path, default_jobs):
    before = files_below(there)
    entry = ["--snakefile", there / "Snakefile", "--directory", here]
    code, output = snakemake(tmp_path, "-n", *entry)
    assert code == 0, output
    assert planned(output) == default_jobs
    # the small tables of the checkout go into it, and a drawing; paths in a configuration are seen from here
    (here / "config").mkdir()
    shutil.copy(there / "config/example.csv", here / "config")
    configuration = ["--configfile", there / "config/example.yaml"]
    code, output = snakemake(tmp_path, "uai2016_figure1", "corpora", *entry, *configuration)
    assert code == 0, output
    made = files_below(here) - {"config/example.csv"}
    assert made >= {f"results/uai2016/uai2016_figure1.{kind}" for kind in ("png", "pdf", "csv")}
    assert len(mc2core.Corpus.load(here / "results/corpora/mine/train").vocabulary) > 10
    assert all(path.startswith("results/") for path in made)
    assert files_below(there) == before


def test_own_configuration_and_table_of_a_folder_override_ours(there, here, tmp_path):
    (here / "config").mkdir()
    (here / "config/config.yaml").write_text("datasets: [nips]\nseeds: 2\n")
    (tmp_path / "more.yaml").write_text("seeds: 5\n")
    entry = ["--snakefile", there / "Snakefile", "--directory", here]
    (here / "config/experiments.tsv").write_text(
        "run\ttargets\tdataset\tmethod\tmodel\tengine\tcontexts\tsettings\nmine\ticml2014_table1\tnips\tMC2\tmc2\tgibbs\t\t\n"
    )
    for further, seeds in (([], 2), (["--configfile", "more.yaml"], 5)):
        code, output = snakemake(tmp_path, "-n", "icml2014_table1", *entry, *further)
        assert code == 0, output
        assert f"results/scores/mine/{seeds - 1}.json" in output
        assert f"results/scores/mine/{seeds}.json" not in output
        assert planned(output) == {
            "fit": 0, "fit_nips_hdp": 0, "corpus": 1, "warm_kernels": 1, "icml2014_table1": 1, "report_html": 0,
            "all": 0,
        }  # fmt: skip
    (here / "config/config.yaml").write_text("datasets: [nips]\nsedes: 2\n")
    code, output = snakemake(tmp_path, "-n", *entry)
    assert code == 1
    assert "configuration: 'sedes' is not known; did you mean 'seeds'?" in output
    assert "Traceback" not in output


#: what makes every kind of file in under a minute: times are given, so that none are taken
TABLE1 = {"n_clusters": [100], "bits": [8]}
SMALL = {"seeds": 1, "datasets": ["aua"], "corpora": {"aua": {"scale": 0.0005}}, "nips2012": {"table1": TABLE1}}
SMALL |= {"fit": {"letters": {"iterations": 3, "burn_in": 1, "thin": 1}, "aua": {"iterations": 1}}}


def give_times(results):
    (results / "times").mkdir(parents=True)
    (results / "times/nips2012.csv").write_text(
        "part,method,clusters,bits,seed,in_use,other_cores,microseconds_per_document\ntotal,FastEx,100,8,0,50,0.0,10.0\n"
    )


def test_a_module_runs_whole_and_moved_makes_missing_files_again(there, here, tmp_path):
    """With a prefix and a part of the configuration."""
    ours = SMALL | {"datasets": ["aua", "labelme"]}
    outer(here, MODULE.format(snakefile=repr(f"../{there.name}/workflow/Snakefile")), {"samples": 3, "mc2": ours})
    results = here / "parts/mc2/results"

    code, output = snakemake(here, "-n")
    assert code == 0, output
    assert "rule first:" in output  # ours do not push themselves before it

    give_times(results)
    code, output = snakemake(here, "mc2_all")
    assert code == 0, output
    page = (results / "report.html").read_text()
    assert "uai2016_figure2.png" in page
    assert "nips2012_table1.html" in page
    # labelme has no files here
    said = "Datasets: aua; 1 seed; perplexity by marginal and icml14. Each table and figure says which of its data"
    assert said in " ".join(page.split())
    assert "Left out, since their files are not here: labelme." in " ".join(page.split())
    page = (results / "index.html").read_text(encoding="utf-8")
    assert 'href="nips2012/nips2012_table1.csv"' in page

    for folder in (there, here):
        shutil.copytree(folder, tmp_path / "moved" / folder.name, symlinks=True)
        shutil.rmtree(folder)
    there, here = (tmp_path / "moved" / folder.name for folder in (there, here))
    results = here / "parts/mc2/results"

    def planned_now():
        code, output = snakemake(here, "-n", "mc2_all")
        assert code == 0, output
        return output

    assert "Nothing to be done" in planned_now()
    for files in (  # those of a row do not depend on each other
        {
            "uai2016/uai2016_figure1.pdf": "uai2016_figure1",
            "uai2016/uai2016_table2.md": "uai2016_table2",
            "nips2012/nips2012_table1_claims.csv": "nips2012_table1",
        },
        {"claims.tex": "claims"},
        {"index.html": "reproduction_report"},
    ):
        for i, file in enumerate(files):
            (results / file).rename(tmp_path / f"aside{i}")
        output = planned_now()
        for i, (file, rule) in enumerate(files.items()):
            assert re.search(rf"^mc2_{rule} +1$", output, re.M), (file, output)
            (tmp_path / f"aside{i}").rename(results / file)

    printed = there / "workflow/paper/uai2016_table2.csv"
    printed.write_text(printed.read_text() + "\n")
    assert re.search(r"^mc2_uai2016_table2 +1$", planned_now(), re.M)

    # settings that are passed reach the job, and no file is left outside the prefix
    model = "parts/mc2/results/fits/letters/0/posterior.npz"
    passed = {"datasets": ["letters"], "estimators": ["marginal"]}
    (here / "config/config.yaml").write_text(yaml.safe_dump({"mc2": ours | passed}))
    code, output = snakemake(here, model)
    assert code == 0, output
    assert mc2core.Posterior.load(here / model).provenance["iterations"] == 3
    assert sorted(path.name for path in here.iterdir() if path.name != ".snakemake") == ["Snakefile", "config", "parts"]


def test_as_a_module_from_a_repository(there, here):
    subprocess.run(["git", "init", "-q", "."], cwd=there, check=True)
    subprocess.run(["git", "add", "."], cwd=there, check=True)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, "commit", "-q", "-m", "all"], cwd=there, check=True)
    for part in ("workflow", "config", "Snakefile"):
        path = there / part
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    entry = f'gitfile({str(there)!r}, path="workflow/Snakefile", commit="HEAD")'
    outer(here, MODULE.format(snakefile=entry), {"mc2": {}})
    # not by way of "first": Snakemake 9.27 trips over scripts of a local repository for all jobs but the target's
    code, output = snakemake(here, "mc2_uai2016_figure1")
    assert code == 0, output
    assert (here / "parts/mc2/results/uai2016/uai2016_figure1.png").stat().st_size > 1000


def test_what_the_catalogue_of_workflows_asks_for_is_there():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert set(usage) <= {"mandatory-flags", "software-stack-deployment"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"}
    assert set(usage["software-stack-deployment"]) == {"conda", "singularity", "singularity+conda", "report"}
    for file in ("workflow/Snakefile", "config/README.md", "README.md"):
        assert (ROOT / file).is_file()
    assert {"snakemake", "workflow"} <= set((ROOT / "README.md").read_text().lower().split())
