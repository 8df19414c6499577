"""Make a release, except for the upload, which needs an account: ``python tools/release.py dist``, and ``site``.

``dist`` builds the source distribution and the wheel in ``dist/`` and checks them. Then it tests the wheel in an empty
environment and folder, by the commands of docs/start.md and a figure of a paper. ``site FOLDER`` builds the
documentation into FOLDER/VERSION, and writes FOLDER/index.html, which leads to the newest version. ``hashes`` writes
constraints-hashes.txt: the versions in constraints.txt with the hashes of the files for this machine.
"""

from __future__ import annotations

import argparse
import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: tools with a separate environment, because they need other versions of packages than the workflow
TOOLS = ("build==1.6.1", "twine==7.0.0")
FIGURE = "uai2016_figure1"
#: licences that the licence expression of the package must have, by words in the text of a licence file
LICENCES = {
    "BSD-3-Clause": "Redistributions in binary form must reproduce",
    "ISC": "with or without fee is hereby granted",
    "MIT": "permission notice shall be included",
    "Unlicense": "released into the public domain",
}
FIT = """
import mc2core
from mc2core.models import MC2

corpus = mc2core.Corpus.load("results/own/corpus")
fit = mc2core.fit(corpus, MC2(contexts=["year", "author"]), iterations=20, seed=0)
assert len(fit.clusters()) > 1, fit.clusters()
assert fit.provenance["git_commit"], "the commit is not known"
assert "checkout" not in mc2core.__file__, mc2core.__file__
"""


def run(*command, **options):
    """Run a command; if it fails, exit with its output."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def environment(folder):
    """Make a virtual environment, and return the folder of its programs."""
    run(sys.executable, "-m", "venv", folder)
    return folder / "bin"


def build(scratch, dist):
    """Build the wheel and the source distribution, and return their paths."""
    programs = environment(scratch / "tools")
    run(programs / "pip", "install", "-q", *TOOLS)
    run(programs / "python", "-m", "build", "--outdir", dist, ROOT)
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    run(programs / "twine", "check", "--strict", wheel, source)  # checks the metadata and the long description
    return wheel, source


def check(wheel, source):
    """Check properties of both files that twine does not check."""
    with zipfile.ZipFile(wheel) as archive, tarfile.open(source) as packed:
        names = archive.namelist()
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        about = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        texts = [archive.read(f"{info}/licenses/{name}").decode() for name in about.get_all("License-File")]
        commit = archive.read("mc2core/commit.txt").decode()
        sources = packed.getnames()
    assert {name.split("/")[0] for name in names} == {"mc2core", "mc2papers", info}, names
    stray = [
        name for name in (*names, *sources) if re.search(r"(^|/)(tests?|test_\w+\.py|__pycache__|\.git)(/|$)", name)
    ]
    assert not stray, f"what no user needs is in the files: {stray}"
    for name in ("workflow/Snakefile", "config/config.yaml", "config/example.csv", "profiles/default/config.yaml"):
        assert f"mc2papers/checkout/{name}" in names, f"{name} is not in the wheel"
    expression = set(re.split(r" AND ", about["License-Expression"]))
    found = {name for name, words in LICENCES.items() if any(words in " ".join(text.split()) for text in texts)}
    assert expression == found, f"the licence expression names {expression}, the licence texts {found}"
    links = re.findall(r"\]\((?!https?:)[^)]*\)", about.get_payload())
    assert not links, f"the long description has links into the checkout: {links}"
    print(f"{wheel.name}: {len(names)} files, {wheel.stat().st_size / 1e6:.1f} MB, commit {commit[:8]}")


def try_out(scratch, wheel):
    """Test the wheel without a checkout: the start page, a fit from Python, a report, and a figure of a paper."""
    folder = scratch / "a user"  # the path has a blank, because programs must work with it
    folder.mkdir()
    environment(folder / ".venv")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "MC2"))}
    plain["PIP_NO_COMPILE"] = "1"  # takes half of the time
    plain["PIP_CONSTRAINT"] = str(ROOT / "constraints.txt")  # new releases of dependencies are not tested here
    shown = (ROOT / "docs/start.md").read_text(encoding="utf-8").partition("## As part of the workflow")[0]
    commands = re.findall(r"^```sh\n(.*?)^```$", shown, re.M | re.S)[1:]  # the first installs from a checkout
    examples = re.findall(r"^```python\n(.*?)^```$", shown, re.M | re.S)
    steps = [
        (f"install {wheel.name}[explore]", f"pip install -q '{wheel}[explore]'"),
        ("mc2 --version", "mc2 --version | grep commit"),
        ("the example", 'mkdir config && cp "$(mc2papers folder)/config/example.csv" config'),
        *((command.splitlines()[0], command.replace(".venv/bin/", "")) for command in commands),
        ("a fit from Python", "python - <<'END'\n" + FIT + "END"),
        *(("Python of the start page", f"python - <<'END'\n{example}END") for example in examples),
        ("the report", "grep -q vega results/own/description/index.html"),
        (f"install {wheel.name}[workflow]", f"pip install -q '{wheel}[workflow]'"),
        ("mc2papers", "mc2papers --help && mc2papers run --help"),
        (FIGURE, f"mc2papers run {FIGURE} --cores 2 && test -s results/{FIGURE.partition('_')[0]}/{FIGURE}.png"),
    ]
    for name, step in steps:
        before, cpu = time.monotonic(), sum(os.times()[2:4])
        activated = f"source .venv/bin/activate\nset -euo pipefail\n{step}"
        run("bash", "-c", activated, cwd=folder, env=plain)
        print(f"{time.monotonic() - before:6.1f} s, {sum(os.times()[2:4]) - cpu:5.1f} CPU s: {name}", flush=True)


def make_site(folder):
    """Build the documentation of this version next to the documentation of other versions."""
    version = re.search(r'__version__ = "(.*)"', (ROOT / "src/mc2core/__init__.py").read_text())[1]
    run(Path(sys.executable).with_name("sphinx-build"), "-q", "-W", "--keep-going", ROOT / "docs", folder / version)
    shutil.rmtree(folder / version / ".doctrees", ignore_errors=True)
    others = (path.name for path in folder.iterdir() if (path / "index.html").is_file())
    versions = sorted(others, key=lambda name: [*map(int, re.findall(r"\d+", name))], reverse=True)
    items = "\n".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in versions)
    page = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>mc2core</title>\n'
        f'<meta http-equiv="refresh" content="5; url={versions[0]}/index.html">\n'
        "<h1>mc2core</h1>\n<p>The newest version opens in five seconds. All versions:</p>\n"
        f"<ul>\n{items}\n</ul>\n</html>\n"
    )
    (folder / "index.html").write_text(page, encoding="utf-8")
    print(f"{folder}/index.html: {', '.join(versions)}")


def write_hashes():
    """Write all packages of constraints.txt with the hashes of the files that pip would install on this machine."""
    extras = f"{ROOT}[workflow,test,cluster,spark,docs]"
    options = ("--dry-run", "--ignore-installed", "--quiet", "--report", "-", "-c", ROOT / "constraints.txt")
    report = json.loads(run(sys.executable, "-m", "pip", "install", *options, "-e", extras))
    hashes = {
        re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower(): one["download_info"]["archive_info"]["hashes"][
            "sha256"
        ]
        for one in report["install"]
        if "archive_info" in one["download_info"]
    }
    lines = [
        "# The versions of constraints.txt, with hashes (Linux, x86-64, Python 3.11); docs/development/releasing.md"
    ]
    for line in (ROOT / "constraints.txt").read_text().splitlines()[1:]:
        name = re.sub(r"[-_.]+", "-", line.split("==")[0]).lower()
        lines.append(f"{line} --hash=sha256:{hashes[name]}")
    (ROOT / "constraints-hashes.txt").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["dist", "site", "hashes"])
    parser.add_argument("folder", nargs="?", type=Path, help="default: dist, or build/publish for the site")
    options = parser.parse_args()
    if options.what == "hashes":
        write_hashes()
        return
    if options.what == "site":
        make_site((options.folder or ROOT / "build/publish").resolve())
        return
    dist = (options.folder or ROOT / "dist").resolve()
    shutil.rmtree(dist, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        wheel, source = build(Path(scratch), dist)
        check(wheel, source)
        try_out(Path(scratch), wheel)


if __name__ == "__main__":
    main()
