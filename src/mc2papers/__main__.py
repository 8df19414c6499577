"""``python -m mc2papers``: the command line of the reproduction."""

import sys

from mc2papers.cli import main

if __name__ == "__main__":
    sys.exit(main())
