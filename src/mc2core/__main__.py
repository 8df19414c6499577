"""``python -m mc2core``: the command line."""

import sys

from mc2core.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
