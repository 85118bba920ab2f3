"""Operations by name: every one of NumPy's, by the implementation that is asked for or not at all."""

import numpy as np
import pytest

import cinductor
from cinductor import ops

X = np.linspace(0.1, 0.9, 9).reshape(3, 3)
META = ops.op_metadata()


def assert_close(got, want):
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_every_callable_has_a_row():
    covered = cinductor.coverage().rows
    assert set(META) == {name for name in covered if name in ops.functions()}
    for space in ("linalg", "fft", "random"):
        assert any(name.startswith(f"{space}.") for name in META) and dir(getattr(ops, space))
    assert {"svd", "inv"} <= set(dir(ops.linalg)) and "linalg" in dir(ops) and "linalg.svd" not in dir(ops)
    assert META["exp"].dtypes and "float64" in META["exp"].dtypes and META["add"].operands == 2
    assert META["roots"].how == "break" and META["linalg.svd"].how == "called"


@pytest.mark.parametrize("name", ["exp", "add", "sum", "mean", "sort", "roots", "linalg.svd", "fft.fft", "shape", "matmul", "diff"])
def test_an_implementation_computes_it_or_refuses(name):
    row = ops.op_metadata(name)
    operation = ops
    for part in name.split("."):
        operation = getattr(operation, part)
    args = (X, X) if name in ("add", "matmul") else (X[0],) if name == "roots" else (X,)
    want = ops.functions()[name](*args)
    assert_close(operation(*args, implementation="numpy"), want)
    for who in ("cpu.c", "cpu.interp"):
        if row.how in ("compiled", "composed"):
            assert row.implementations[who] is None
            assert_close(operation(*args, implementation=who), want)
        else:
            with pytest.raises(ValueError, match=rf"{name} is not computed by '{who}': "):
                operation(*args, implementation=who)
    assert_close(operation(*args), want)


def test_what_an_implementation_cannot_do_for_arguments_is_refused():
    with pytest.raises(cinductor.Unsupported):
        ops.add(X.astype(object), 1, implementation="cpu.c")


@pytest.mark.parametrize("name", ["nothing", "svdd", "numpy_exp"])
def test_other_names(name):
    with pytest.raises(AttributeError, match=f"no operation is called '{name}'"):
        getattr(ops, name)
    with pytest.raises(AttributeError, match="no operation is called 'linalg.nothing'"):
        ops.linalg.nothing  # noqa: B018
    with pytest.raises(AttributeError):
        ops.op_metadata(name)
