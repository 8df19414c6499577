"""Where things are: the checkout, and the local data folder of real files."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA_FOLDER = Path(os.environ.get("MC2_DATA_FOLDER") or ROOT.parent / "shared/mirror")
