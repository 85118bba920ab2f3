"""The mark of tests that need kernels of stencils, which not every processor has."""

import pytest

from cinductor import _core

WHY_NO_STENCILS = next(why for _, name, _, why in _core.backends("cpu") if name == "stencil")
with_stencils = pytest.mark.skipif(WHY_NO_STENCILS is not None, reason=str(WHY_NO_STENCILS))
