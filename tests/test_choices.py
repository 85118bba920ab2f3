"""Thresholds of the compiler: rows of csrc/ir/choices.def, which a user may set."""

import numpy as np
import pytest

import cinductor
from cinductor import compile

X = np.random.default_rng(0).random((8, 4096))


def spread(x):
    return (x.mean(),)


def kernels(**ways):
    return cinductor.explain(compile(spread, backend="interp", **ways), X).kernels


def test_every_choice_has_values_and_a_sentence():
    choices = cinductor.list_choices()
    assert {"few_points", "near_lines", "short_sum"} <= {choice.name for choice in choices}
    for choice in choices:
        assert choice.cpu > 0 and choice.gpu > 0 and choice.doc.endswith("."), choice


def test_a_choice_changes_kernels_and_no_bit():
    plain, split = kernels(), kernels(options={"choices": "split_elements=256, least_subtree=64"})
    assert plain != split and "split into" in split
    for backend in ("interp", "c"):
        few = compile(spread, backend=backend, options={"choices": "split_elements=256, least_subtree=64"})
        for got, expected in zip(few(X), spread(X)):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("few_point=3", ValueError, "did you mean 'few_points'"),
        ("few_points", ValueError, "an int of at least 1"),
        ("few_points=0", ValueError, "an int of at least 1"),
        ("few_points=1e3", ValueError, "an int of at least 1"),
        ("few_points=-4", ValueError, "an int of at least 1"),
        (f"few_points={10**15}", ValueError, "an int of at least 1"),
        (16, TypeError, "a string like"),
    ],
)
def test_what_is_no_choice_is_refused(value, error, words):
    with pytest.raises(error, match=words):
        compile(spread, options={"choices": value})


def test_the_environment_is_checked(monkeypatch):
    monkeypatch.setenv("CINDUCTOR_CHOICES", "few_points=nine")
    with pytest.warns(cinductor.CinductorWarning, match="CINDUCTOR_CHOICES has no effect"):
        cinductor.config.reload()
    monkeypatch.undo()
    cinductor.config.reload()
