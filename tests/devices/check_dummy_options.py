"""Each option on a device from outside: it changes something, or words refuse it."""

import cinductor_dummy as dummy
import option_effects
import pytest

dummy.register()


@pytest.mark.parametrize("on_device", [False, True], ids=["copied", "on the device"])
@pytest.mark.parametrize("name", option_effects.ROWS)
def test_an_option(name, on_device):
    option_effects.check(name, "dummy", on_device)
