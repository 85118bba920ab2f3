"""Each option on a GPU: it changes something, or words refuse it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import folders  # noqa: F401
import option_effects

faults = []
for on_device in (False, True):
    for name in option_effects.ROWS:
        try:
            option_effects.check(name, "cuda", on_device)
        except AssertionError as error:
            faults.append(f"{name}, {'arrays of the device' if on_device else 'copies'}: {error}"[:400])
print("\n".join(faults) or "ok options")
