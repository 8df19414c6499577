"""The registry of tables and figures, and what the workflow makes of it."""

import shutil
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from helpers.paths import ROOT

from mc2papers import inputs, targets

MADE_UP = '''"""A table that no paper has."""

from mc2papers.targets import Built, Target


def _build(files, options):
    import pandas as pd

    from mc2papers.report.claims import judge, mean_of

    table = pd.DataFrame({"seeds": [options["seeds"]], "files": [len(files)]})
    return Built(table, claims=[judge("letters", "there are rows", [mean_of("rows", [1, 1], above=0, digits=0)])])


TARGET = Target(
    title="A table that no paper has",
    shows="one row",
    build=_build,
    caption=lambda options: f"Of {options['seeds']} seeds.",
    options=lambda configuration, name: {"seeds": configuration.config["seeds"]},
    draws=("letters",),
)
'''


def test_every_target_keeps_the_contract():
    for name, target in targets.registry().items():
        assert name == target.name
        assert name.replace("_", "") == f"{target.paper}{target.item.replace(' ', '')}"
        assert set(target.inputs.values()) <= set(inputs.KINDS)
        assert (ROOT / f"workflow/paper/{target.printed}").is_file() or not target.has_paper
        assert {"csv", "html"} <= target.outputs().keys() or {"csv", "png"} <= target.outputs().keys()
    papers = list(dict.fromkeys(target.paper for target in targets.registry().values()))
    assert [paper for paper in papers if paper != "studies"] == list(targets.PAPERS)[:-1]  # studies are the user's


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        (
            "models",
            ["results/fits/b/0/posterior.npz", "results/fits/b/1/posterior.npz", "results/fits/a/0/posterior.npz"],
        ),
        ("first models", ["results/fits/b/0/posterior.npz", "results/fits/a/0/posterior.npz"]),
        ("corpora", ["results/corpora/nips"]),
        ("sizes", ["results/sizes/icml2014.csv"]),
    ],
)
def test_files_of_a_kind_are_those_of_the_runs_fits_or_corpora(kind, files):
    runs = {"b": {"dataset": "nips"}, "a": {"dataset": "nips"}}
    configuration = SimpleNamespace(runs=runs, runs_of=lambda target: list(runs), seeds_of={"b": [0, 1], "a": [0]}.get)
    assert inputs.files_of(kind, configuration, "icml2014_table1") == files


def test_a_module_without_a_contract_is_refused(tmp_path):
    package = tmp_path / "mc2papers"
    shutil.copytree(ROOT / "src/mc2papers", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "icml2014/table9.py").write_text('"""Nothing."""\n')
    code = "from mc2papers import targets; targets.registry()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.endswith("ValueError: mc2papers.icml2014.table9 has no TARGET\n")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("icml2014/tabel9", "targets of ICML 2014 are named tableN or figureN"),
        ("studies/my-study", "targets of Further studies are named by lower-case letters, digits and _"),
    ],
)
def test_a_contract_in_a_module_of_another_name_is_refused(tmp_path, module, said):
    package = tmp_path / "mc2papers"
    shutil.copytree(ROOT / "src/mc2papers", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / f"{module}.py").write_text("TARGET = None\n")
    code = "from mc2papers import targets; targets.registry()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert f"{module}.py has a TARGET, but {said}" in done.stderr


def test_what_is_slow_to_load_is_not_loaded_with_the_contracts():
    """Every job of the workflow reads the registry: matplotlib and numba would take it most of a second."""
    code = "import sys; from mc2papers import targets; targets.registry(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"matplotlib", "numba", "scipy.special", "sklearn"} & set(done.stdout.split())


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.parametrize(("paper", "item"), [("icml2014", "table9"), ("studies", "any_name")])
def test_a_new_module_is_a_target_and_nothing_else_is_touched(checkout, monkeypatch, paper, item):
    shutil.copytree(ROOT / "src", checkout / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / f"src/mc2papers/{paper}/{item}.py").write_text(MADE_UP)
    monkeypatch.setenv("PYTHONPATH", str(checkout / "src"))
    name, made = f"{paper}_{item}", f"results/{paper}/{paper}_{item}"
    command = [sys.executable, "-m", "snakemake", "--cores", "1", name, "--configfile", "config/test.yaml"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(checkout / f"{made}.csv").to_dict("list") == {"seeds": [2], "files": [0]}
    assert "A table that no paper has" in (checkout / f"{made}.html").read_text()
    claims = pd.read_csv(checkout / f"{made}_claims.csv")
    assert claims[["data", "verdict"]].to_numpy().tolist() == [["drawn as in the paper (MC2)", "reproduced"]]


def test_a_figure_of_a_table_is_refused(tmp_path, monkeypatch):
    built = targets.Built(pd.DataFrame(), figure=object())
    table = replace(targets.registry()["icml2014_table2"], build=lambda *_: built)
    monkeypatch.setattr(targets, "registry", lambda: {table.name: table})
    with pytest.raises(ValueError, match="is a table, but its module returned a figure; set is_study=True"):
        targets.make(table.name, {}, {}, {}, tmp_path / "table")
