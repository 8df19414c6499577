"""``python -m mc2core``: the command line."""

import runpy

if __name__ == "__main__":
    # by its name: the command line stands above all else, and this file below it
    runpy.run_module("mc2core.app.cli", run_name="__main__", alter_sys=True)
