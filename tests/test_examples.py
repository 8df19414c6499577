"""The examples of the documentation run as they stand; those of its gallery run when it is built."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import pytest
from helpers.paths import ROOT

from mc2core.app.cli import main

START = ("docs/start.md",)
#: in the order in which they are read: each goes on with the fits and documents of those before
GUIDES = (
    "docs/how_to/own_texts.md",
    "docs/how_to/new_documents.md",
    "docs/how_to/contexts.md",
    "docs/how_to/coming_from.md",
)


def blocks(names, kind):
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    return [block for text in texts for block in re.findall(rf"```{kind}\n(.*?)```", text, re.S)]


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "config").mkdir()
    shutil.copy(ROOT / "config/example.csv", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_readme_prints_what_it_shows(checkout, capsys):
    exec(compile(*blocks(("README.md",), "python"), "README.md", "exec"), {})
    after = (ROOT / "README.md").read_text(encoding="utf-8").partition("```python")[2]
    shown, printed = (
        [line.split() for line in text.splitlines()]
        for text in (re.search(r"```text\n(.*?)```", after, re.S)[1], capsys.readouterr().out)
    )
    assert printed == shown


@pytest.mark.parametrize(("names", "number"), [(START, 1), pytest.param(GUIDES, 10, marks=pytest.mark.slow)])
def test_python_examples_run(checkout, capsys, names, number):
    scope = {}
    examples = blocks(names, "python")
    for example in examples:
        exec(compile(example, names[0], "exec"), scope)
    assert len(examples) == number
    assert "ferry" in capsys.readouterr().out


@pytest.mark.slow
def test_the_example_of_observations_finds_its_schools(capsys):
    (example,) = blocks(("docs/how_to/observations.md",), "python")
    exec(compile(example, "observations.md", "exec"), scope := {})
    assert scope["posterior"].contents.mean.shape[1] == 2
    said = capsys.readouterr().out
    assert float(re.search(r"agreement with the truth: (\S+)", said)[1]) > 0.9
    assert float(re.search(r"of new schools: (\S+)", said)[1]) > 0.8


@pytest.mark.slow
def test_the_guides_commands_run(checkout, capsys):
    commands = [line for block in blocks(GUIDES, "sh") for line in block.splitlines()]
    assert len(commands) == 7
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    assert "counted as '(rare)'" in capsys.readouterr().out


@pytest.mark.slow
def test_a_collection_grows_by_the_commands_of_its_page(tmp_path, monkeypatch, capsys):
    """Files of three subjects, one of which is new on the second day; what is told of the days, and both ways go on."""
    page, rng = ("docs/how_to/every_day.md",), np.random.default_rng(0)
    words = [
        "ferry harbour lake sail rope storm",
        "bread dough oven flour grain mill",
        "iron steel anvil forge coal nail",
    ]
    monkeypatch.chdir(tmp_path)
    for day, n in (("monday", 40), ("tuesday", 12), ("wednesday", 12)):
        subjects = rng.integers(0, 2 if day == "monday" else 3, n)
        rows = [
            {
                "id": f"{day} {number}",
                "abstract": " ".join(rng.choice(words[subject].split(), 12)),
                "authors": [f"author {subject}"],
                "year": int(1990 + 10 * subject + rng.integers(0, 3)),
            }
            for number, subject in enumerate(subjects)
        ]
        (tmp_path / f"{day}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    assert len(commands) == 8
    for command in commands:
        assert main(shlex.split(command)[1:]) == 0
    said = capsys.readouterr()
    assert "new columns: 6 words, 1 value of author" in said.out
    assert "the model may no longer fit" in said.err
    assert (tmp_path / "pages/wednesday/arrivals.csv").read_text().count("\n") == 3
    (example,) = blocks(page, "python")
    exec(compile(example, page[0], "exec"), scope := {})
    assert (scope["stream"].n_documents, scope["everything"].n_documents) == (12, 52)


IN_A_PIPE = """
import sys
from mc2core.app.cli import main
from mc2core.base import progress
progress.LINE_SECONDS = 0.005
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_the_example_compiles_its_kernels_once_and_says_so(checkout):
    """Import, fit and describe, each in a process of its own.

    The interval of lines is a small part of the usual one; how long they are apart is held by the tests of progress.
    """
    commands = [line for block in blocks(START, "sh") for line in block.splitlines() if "results/own" in line]
    commands = [line for line in commands if line.split()[1:2] in (["import"], ["fit"], ["describe"])][:3]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(checkout / "kernels")}

    def call(command):
        arguments = [sys.executable, "-c", IN_A_PIPE, *shlex.split(command)[1:]]
        return subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True)

    _, first, described = map(call, commands)
    assert (checkout / "results/own/description/index.html").is_file()
    stored = [path.name.partition(".")[0] for path in (checkout / "kernels").rglob("*.nbc")]
    assert 20 < len(stored) < 120
    others = {"local", "exact", "visits", "graph", "passes", "uncollapsed"}  # of SVI and FastEx
    assert not others & set(stored)

    said = first.stderr
    numbers = [int(number) for number in re.findall(r"compiling kernels \(once\), number (\d+) ", said)]
    assert len(numbers) > 5
    assert numbers == sorted(numbers)
    assert re.search(r"gibbs, preparing kernels: .*compiling kernels \(once\), number \d+ \(\w+\): \[\d\d:\d\d\]", said)
    assert "topics, " not in said  # found in the few documents on which kernels are compiled
    assert "map of documents (t-SNE)" in described.stderr

    again = call(commands[1].replace("own/fit", "own/again"))
    assert re.search(r"gibbs, start: topics settle from \d+ clusters?: \d+/\d+ sweeps", again.stderr)
    assert "compiling" not in again.stderr + again.stdout
    seconds = [json.loads((checkout / f"results/own/{one}/provenance.json").read_text()) for one in ("fit", "again")]
    assert [one["compile_seconds"] > 1 for one in seconds] == [True, False]
    assert seconds[1]["compile_seconds"] == 0
    said = call("mc2 evaluate results/own/fit/posterior.npz results/own/corpus").stderr
    assert re.search(r"left_to_right(: \d+/\d+ documents|: compiling)", said)


def test_the_example_texts_are_those_that_their_script_writes(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools/example_texts.py", tmp_path / "texts.csv"], check=True)
    assert (tmp_path / "texts.csv").read_bytes() == (ROOT / "config/example.csv").read_bytes()
