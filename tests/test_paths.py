"""Files that documents, docstrings, comments and messages name are there."""

import re

from helpers.paths import ROOT

#: folders of the checkout, but for what runs make
FOLDERS = ("benchmarks", "config", "docs", "src", "tests", "workflow")
TEXTS = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".md", ".py", ".pyi", ".smk", ".yaml", ".tsv")
]
TEXTS += [
    *ROOT.glob("*.md"),
    ROOT / "results/README.md",
    ROOT / "pyproject.toml",
    ROOT / "Snakefile",
    ROOT / "workflow/Snakefile",
    ROOT / ".ci/run",
]
#: a path from the root, or a pattern of paths; what goes on in braces is made of parts
NAMED = re.compile(rf"(?<![\w./$}}>-])((?:{'|'.join(FOLDERS)})/[\w./*-]++)(?!{{)")
LINKED = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)]*)?\)")
#: files that tests write
MADE = {"workflow/rules/probe.smk"}


def is_there(path):
    return path in MADE or (any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists())


def test_paths_that_are_named_exist():
    missing = {}
    for source in TEXTS:
        text = source.read_text(encoding="utf-8")
        named = {path.rstrip(".-") for path in NAMED.findall(text)}
        lost = {path for path in named if not is_there(path)}
        if source.suffix == ".md":
            lost |= {path for path in LINKED.findall(text) if not (source.parent / path).exists()}
        if lost:
            missing[str(source.relative_to(ROOT))] = sorted(lost)
    assert len(TEXTS) > 100
    assert not missing, missing
