"""Two folders of results are the same but for times, or the file and place of a difference is named."""

import json
import shutil

import numpy as np
import pytest
from reliability.compare import TIMED_CLAIM, differences

from mc2papers.report import scorecard

CLAIMS = "claim,verdict,numbers\nSVI is sooner,reproduced,1 s against 2 s\nK = 4,reproduced,4\n"


@pytest.fixture
def folders(tmp_path):
    whole = tmp_path / "whole"
    (whole / "logs").mkdir(parents=True)
    (whole / "logs" / "times.csv").write_text("anything")
    (whole / "provenance.json").write_text('{"git_commit": null}')
    (whole / "claims.csv").write_text(CLAIMS)
    (whole / "trace.tsv").write_text("iteration\tseconds\tclusters\n1\t0.5\t3\n2\t0.7\t4\n")
    (whole / "score.json").write_text('{"perplexity": {"marginal": 168.2}, "seconds": 0.5}')
    meta = {"snapshot_times": [{"iteration": 1, "seconds": 0.1}]}
    np.savez(whole / "posterior.npz", cluster=np.array([0, 1]), meta=json.dumps(meta), digest="a")
    again = tmp_path / "again"
    shutil.copytree(whole, again)
    return whole, again


def test_times_make_no_difference(folders):
    whole, again = folders
    (again / "logs" / "times.csv").unlink()
    (again / "provenance.json").write_text('{"git_commit": "abc"}')
    (again / "claims.csv").write_text(CLAIMS.replace("reproduced,1 s against 2 s", "not reproduced,3 s against 2 s"))
    (again / "trace.tsv").write_text("iteration\tseconds\tclusters\n1\t1.5\t3\n2\t1.7\t4\n")
    (again / "score.json").write_text('{"perplexity": {"marginal": 168.2}, "seconds": 1.5}')
    meta = {"snapshot_times": [{"iteration": 1, "seconds": 0.2}]}
    np.savez(again / "posterior.npz", cluster=np.array([0, 1]), meta=json.dumps(meta), digest="b")
    assert differences(whole, again) == []


def test_every_claim_with_a_measured_time_is_known_as_timed():
    claims = scorecard.recorded()
    timed = (claims["numbers"] + claims["reason"]).str.contains(r"\d (?:s|us)\b|times on \d")
    assert timed.sum() >= 8
    assert claims.loc[timed & ~claims["claim"].str.contains(TIMED_CLAIM), "claim"].to_list() == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("claims.csv", "K = 4,reproduced", "K = 4,not reproduced", "claims.csv: line 3 is "),
        ("trace.tsv", "2\t0.7\t4", "2\t0.7\t5", "trace.tsv: line 3 is ('2', '4') against ('2', '5')"),
        ("trace.tsv", "2\t0.7\t4\n", "", "trace.tsv: one has ['line 3'], the other []"),
        ("score.json", "168.2", "168.3", "score.json: perplexity is {'marginal': 168.2} against {'marginal': 168.3}"),
    ],
)
def test_difference_is_named(folders, name, old, new, said):
    whole, again = folders
    text = (again / name).read_text()
    assert old in text
    (again / name).write_text(text.replace(old, new))
    (found,) = differences(whole, again)
    assert found.startswith(said)


def test_array_and_missing_file_are_named(folders):
    whole, again = folders
    np.savez(again / "posterior.npz", cluster=np.array([0, 2]), meta="{}", digest="a")
    (again / "trace.tsv").unlink()
    found = differences(whole, again)
    assert found[0] == f"trace.tsv is only in {whole}"
    assert found[1].startswith("posterior.npz: ")
