"""Reference results, and how fresh ones compare with them."""

import json
from pathlib import Path

import pytest
from helpers.configurations import default_configuration, experiments

from mc2papers import cli, configuration
from mc2papers.report import reference


def write(folder, run, scores, trace=None):
    """A fit of one seed."""
    about = {"git_commit": "0123456789", "machine": "Linux", "cores": 2, "cpu_seconds": 60.0}
    files = {f"fits/{run}/0/provenance.json": json.dumps(about)}
    files |= {f"scores/{run}/0.json": json.dumps(scores)} if scores else {}
    files |= {f"fits/{run}/0/trace.tsv": trace} if trace else {}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class TestReference:
    def results(self, folder, perplexities, seconds=60.0):
        for run, values in perplexities.items():
            for seed, value in enumerate(values):
                score, fit = folder / f"scores/{run}/{seed}.json", folder / f"fits/{run}/{seed}/provenance.json"
                for path in (score, fit):
                    path.parent.mkdir(parents=True, exist_ok=True)
                scores = {"clusters": 4.0, "topics": 9.0, "estimator": "marginal", "perplexity": {"marginal": value}}
                score.write_text(json.dumps(scores))
                about = {"git_commit": "0123456789", "machine": "Linux", "cores": 2, "cpu_seconds": seconds}
                fit.write_text(json.dumps(about))
        return folder

    def test_fresh_results_are_the_same_near_or_differ(self, tmp_path, capsys):
        file = tmp_path / "reference.csv"
        before = self.results(tmp_path / "before", {"a": [100.0, 110.0], "b": [200.0], "c": [300.0]}, 120.0)
        assert cli.main(["compare", str(before), str(file), "--record"]) == 0
        assert "4 of 4 reference fits are done" in capsys.readouterr().out
        # a: same, and 2 of 7.1 sd away; b: above 1 %; c: not yet done
        fresh = self.results(tmp_path / "fresh", {"a": [100.0, 112.0], "b": [202.1]})
        with pytest.raises(SystemExit, match="1"):
            cli.main(["compare", str(fresh), str(file)])
        out = capsys.readouterr().out
        assert "3 of 4 reference fits are done; the others took 2 minutes" in out
        assert "Of 9 numbers, the same: 7, near: 1, different: 1." in out
        assert out.endswith("b, seed 0: perplexity 202.1, reference 200\n")

    def test_a_second_record_replaces_its_own_fits_only(self, tmp_path):
        file = tmp_path / "reference.csv"
        reference.record(self.results(tmp_path / "one", {"a": [1.0], "b": [2.0]}), file)
        table = reference.record(self.results(tmp_path / "two", {"b": [3.0]}), file)
        assert table[["run", "perplexity", "commit"]].to_numpy().tolist() == [
            ["a", 1.0, "01234567"],
            ["b", 3.0, "01234567"],
        ]


def test_rivals_followed_labels_and_curves_are_recorded(tmp_path):
    results = tmp_path / "results"
    write(results, "kmeans", {"solutions": [{"solution": f"k{k}", "clusters": k, "nmi": k / 10} for k in (2, 4)]})
    write(results, "sections", None, "iteration\tclusters\tvi_bits\n1\t9\t6.5\n2\t7\t4.5\n")
    write(results, "svi", None, "iteration\tclusters\n1\t9\n")
    (results / "curves").mkdir()
    curve = "run,seed,iteration,perplexity,averaged\nsvi,0,0.5,420.0,\nsvi,0,1.0,390.0,400.0\n"
    (results / "curves/nips.csv").write_text(curve)
    table = reference.record(results, tmp_path / "reference.csv")
    assert table[["run", "solution"]].to_numpy().tolist() == [
        ["kmeans", "k2"], ["kmeans", "k4"], ["sections", ""],
        ["svi", "averaged"], ["svi", "iteration 0.5"], ["svi", "iteration 1"],
    ]  # fmt: skip
    assert table["nmi"].tolist()[:2] == [0.2, 0.4]
    assert table.loc[2, ["clusters", "vi_bits"]].tolist() == [7.0, 4.5]
    assert table["perplexity"].tolist()[3:] == [400.0, 420.0, 390.0]
    said = reference.describe(reference.read_results(results), reference.read_record(tmp_path / "reference.csv"))
    assert said.startswith("3 of 3 reference fits are done")
    assert "Of 9 numbers, the same: 9" in said


def test_reference_fits_are_runs_of_the_real_configuration():
    root = Path(__file__).parents[2]
    runs = experiments(default_configuration())
    real = configuration.read_yaml(root / "config/real.yaml")
    table = reference.read_record(root / "docs/papers/real.csv")
    assert list(table) == list(reference.COLUMNS)
    assert {runs[run]["dataset"] for run in table["run"]} <= set(real["datasets"])
    assert not table.duplicated(reference.KEYS).any()
    assert table[["date", "commit", "machine", "cpu_seconds"]].notna().all(axis=None)
