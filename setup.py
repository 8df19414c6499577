"""Add the workflow and the commit to the packages, and write the long description.

``pip install -e`` adds nothing: `mc2papers run` then takes the files of the checkout.
"""

import re
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
#: what `mc2papers run` needs, with the folder structure of a checkout
WORKFLOW = ("Snakefile", "config", "profiles", "workflow")


def write_commit(package):
    """Write the commit of the checkout beside the version; a source distribution brings its own."""
    known = ["git", "ls-files", "--error-unmatch", "setup.py"]
    if shutil.which("git") is None or subprocess.run(known, cwd=ROOT, capture_output=True).returncode:
        return
    commit, changes = (
        subprocess.run(["git", *call], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        for call in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
    )
    (package / "commit.txt").write_text(commit + ("+changes" if changes else "") + "\n")


class BuildPackages(build_py):
    def run(self):
        super().run()
        if self.editable_mode:
            return
        build = Path(self.build_lib)
        write_commit(build / "mc2core")
        folder = build / "mc2papers" / "checkout"
        shutil.rmtree(folder, ignore_errors=True)
        for name in WORKFLOW:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, folder / name)


class MakeSource(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        write_commit(Path(base_dir) / "src" / "mc2core")


def description():
    """The README without its pictures and links into the checkout, which lead nowhere from a package index."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n(\n\*(?!\*).*?\*\n)?", "", text, flags=re.M | re.S)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", text)


setup(
    cmdclass={"build_py": BuildPackages, "sdist": MakeSource},
    long_description=description(),
    long_description_content_type="text/markdown",
)
