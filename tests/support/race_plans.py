"""Lists the alternatives of a program, for tests and benchmarks of autotuning."""

from cinductor import _core
from cinductor.builds import racing


def alternatives(program):
    """Name and changed options of each alternative that is another plan."""
    options = dict(program.option_values)
    digest, rows, _ = _core.plan(program, options)
    seen = {digest}
    for _, name, value in rows:
        other = racing.changed(options, name, value)
        plan, *_ = _core.plan(program, other)
        if plan not in seen:
            seen.add(plan)
            yield f"{name}={value}", {key: given for key, given in other.items() if given != options[key]}
