"""``python -m mc2core``: the command line."""

import importlib
import sys

# by its name: the command line stands above all else, and this file below it
main = importlib.import_module("mc2core.app.cli").main

if __name__ == "__main__":
    sys.exit(main())
