"""The commands of docs/how_to/guide.md, as they stand there but for fewer sweeps, on the local data folder of real
files."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from helpers.paths import DATA_FOLDER, ROOT

ARCHIVE = DATA_FOLDER / "labelled/ohsumed_single_23.tar.gz"


def commands():
    """The shell lines of the guide."""
    text = (ROOT / "docs/how_to/guide.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


def test_the_guide_has_every_steps_commands_and_every_table():
    text = "".join(commands())
    for command in ("import", "fit", "describe", "clusters", "evaluate"):
        assert f".venv/bin/mc2 {command} " in text
    described = (ROOT / "src/mc2core/explore/clusters.py").read_text(encoding="utf-8")
    guide = (ROOT / "docs/how_to/guide.md").read_text(encoding="utf-8")
    for table in re.findall(r'"(cluster_\w+)":', described):
        assert f"`{table}.csv`" in guide


@pytest.mark.slow
@pytest.mark.skipif(not ARCHIVE.is_file(), reason=f"the real files are not in {DATA_FOLDER} (set MC2_DATA_FOLDER)")
def test_the_guide_runs_from_the_archive_to_the_page(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv/bin").symlink_to(Path(sys.executable).parent)
    script = "".join(commands()).replace("--iterations 60", "--iterations 2")
    script = script.replace("--cut 23", "--cut 12")  # so few sweeps give some 20 clusters
    environment = os.environ | {"DATA_FOLDER": str(DATA_FOLDER)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = re.search(r"prints the datasheet: .*", (ROOT / "docs/how_to/guide.md").read_text(encoding="utf-8"))[0]
    for number, what in re.findall(r"(?<!than )\b([\d,]+) (documents|words|tokens)\b(?! a)", said):
        assert f"| {what} | {number} |" in done.stdout or f"- {number} {what}: in fewer" in done.stdout, number
    page = (tmp_path / "description/index.html").stat().st_size
    assert 1e6 < page < 6e6
    documents = pd.read_csv(tmp_path / "description/documents.csv")
    assert len(documents) == 7400
    assert documents["label"].nunique() == 23
    level = pd.read_csv(tmp_path / "cut.csv")
    assert 1 < level["cluster"].nunique() <= 12
    assert len(pd.read_csv(tmp_path / "new_description/documents.csv")) == len(
        pd.read_csv(tmp_path / "new_clusters.csv")
    )
