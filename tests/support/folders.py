"""Adds the folders of the tests to the path of imports, after installed packages: tests and scripts import helpers,
and other tests, by the names of their files.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
FOLDERS = [TESTS, *(TESTS / name for name in ("support", "core", "capture", "numpy", "program", "devices", "surface"))]

sys.path.extend(str(folder) for folder in FOLDERS if str(folder) not in sys.path)
