"""Objects that hold arrays of the GPU (tests/support/device_objects.py); prints one line for each."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import device_objects

for name in device_objects.CASES:
    device_objects.check(name, "cuda")
    print("ok", name, flush=True)
