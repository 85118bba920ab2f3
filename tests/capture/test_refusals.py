"""A step of a capture that is refused after an effect leaves no trace: the call gives what Python gives, whichever step it is."""

import copy
import signal
import warnings

import breaks
import loop_generator
import number_generator
import numpy as np
import operand_generator
import pytest
import refusing
import test_fuzz

import cinductor

GENERATORS = {
    "loops": loop_generator.Generator,
    "operands": operand_generator.Generator,
    "numbers": number_generator.Generator,
    "lists": loop_generator.Lists,
}
APART = 17  # of the steps of a program one in so many is refused; programs begin at different ones


def refuse_each(program, arguments, way, first):
    """Refuse one in `APART` steps, each in a call of its own; return how many there were."""
    number, refused = first, 0
    while True:
        with refusing.at(way, number) as refusal, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test_fuzz.check_call(program, cinductor.compile(program, backend="interp"), arguments)
        if refusal.calls >= 0:
            return refused
        number, refused = number + APART, refused + 1


@pytest.mark.parametrize("refused", refusing.WAYS)
@pytest.mark.parametrize("kind", GENERATORS)
def test_a_refused_step_after_an_effect(kind, refused, tmp_path, monkeypatch):
    count = 0
    monkeypatch.setattr(signal, "alarm", lambda seconds: 0)
    for seed in range(3):
        made = GENERATORS[kind](seed)
        program = breaks.after_an_effect(test_fuzz.load(made.source(), tmp_path / f"refused_{kind}_{seed}.py"))
        arguments = made.arguments(made.sizes[0], seed, np)
        if test_fuzz.is_defined(program, [copy.deepcopy(arguments)]):
            count += refuse_each(program, arguments, refused, seed % APART)
    assert count > 10
