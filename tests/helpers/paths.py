"""Where things are: the checkout, and the mirror of real files."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIRROR = Path(os.environ.get("MC2_MIRROR") or ROOT.parent / "shared/mirror")
