"""Reference results, and how fresh ones compare with them."""

import json
from pathlib import Path

import pytest

from mc2papers import cli, configuration
from mc2papers.report import reference


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
        assert "Of 9 numbers 7 are the same, 1 near, 1 differ." in out
        assert out.endswith("b, seed 0: perplexity 202.1, reference 200\n")

    def test_a_second_record_replaces_its_own_fits_only(self, tmp_path):
        file = tmp_path / "reference.csv"
        reference.record(self.results(tmp_path / "one", {"a": [1.0], "b": [2.0]}), file)
        table = reference.record(self.results(tmp_path / "two", {"b": [3.0]}), file)
        assert table[["run", "perplexity", "commit"]].to_numpy().tolist() == [
            ["a", 1.0, "01234567"],
            ["b", 3.0, "01234567"],
        ]


def test_reference_fits_are_runs_of_the_real_configuration():
    root = Path(__file__).parents[2]
    config = configuration.read_yaml(root / "config/config.yaml")
    schema = configuration.read_yaml(root / "workflow/schemas/experiments.schema.yaml")
    runs = configuration.read_experiments(root / "config/experiments.tsv", schema, config, config["corpora"])
    real = configuration.read_yaml(root / "config/real.yaml")
    table = reference.read_record(root / "docs/papers/real.csv")
    assert list(table) == list(reference.COLUMNS)
    assert {runs[run]["dataset"] for run in table["run"]} <= set(real["datasets"])
    assert not table.duplicated(reference.KEYS).any()
    assert table[["date", "commit", "machine", "cpu_seconds"]].notna().all(axis=None)
