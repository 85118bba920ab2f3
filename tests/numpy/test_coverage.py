"""Tests the rows of cinductor.coverage(): a sample call of each function must be compiled in the way that its row
says.
"""

import os
import warnings

import numpy as np
import pytest

import cinductor
from cinductor.diagnosis.coverage_table import MEANINGS

V = np.array([0.25, 0.5, 0.125, 0.75])
M = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
N = np.array([3, 1, 2, 0])
B = np.array([True, False, True, True])
# The first call that NumPy accepts is the sample.
ARGUMENTS = [(M,), (V,), (4,), (V, 2), (V, 1), (M, 0), (V, V), (M, M), (N,), (N, N), (V, N), (B, V), (2, 4), (V, B, V), (V, V, V)]
OWN = {  # for functions that accept none of those in a meaningful way
    "choose": (np.array([0, 1, 1]), [V[:3], V[1:]]),
    "compress": (B, V),
    "einsum": ("ij,jk->ik", M, M),
    "full": (3, 2.0),
    "insert": (V, 1, 2.0),
    "isin": (N, N),
    "linspace": (0.0, 1.0, 5),
    "reshape": (M, (9,)),
    "swapaxes": (M, 0, 1),
    "tensordot": (M, M),
    "where": (B, V, V),
    "isnat": None,  # takes no dtype that is compiled
    "place": (V, B, np.array([1.0])),
    "linalg.tensorinv": None,
    "linalg.tensorsolve": None,
}
METHODS = {"reshape": (M, 9), "swapaxes": (M, 0, 1), "astype": (M, "f4"), "choose": (N, [V, V, V, V]), "item": (M, 0)}
ROWS = cinductor.coverage()


def sample(row):
    """A function of arrays that makes such a call, and arguments that NumPy accepts; None if there is none."""
    first, _, name = row.name.rpartition(".")
    if first == "ndarray":
        given = METHODS.get(name)

        def call(x, *rest):
            return getattr(x, name)(*rest)
    else:
        f = np
        for part in row.name.split("."):
            f = getattr(f, part)
        given = OWN.get(row.name, ())
        if given is None:
            return None

        def call(*args):
            return f(*args)

    for args in [given] if given else ARGUMENTS:
        try:
            copies = tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
            call(*copies)
        except Exception:
            continue
        return call, args
    return None


def outcome(call, args):
    """How a function is run: "break", "called" if the program has library calls, else "whole"."""
    compiled = cinductor.compile(call, backend="interp", fullgraph=True)
    try:
        compiled(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    except cinductor.Unsupported:
        return "break"
    found = [s.program for s in compiled.specializations if s.program is not None]
    return "called" if any(p.externs for p in found) else "whole"


# Functions evaluated during capture have no program, and functions without array arguments are not sampled.
OF_ARRAYS = ("ndarray.", "linalg.", "fft.")
LISTED = [
    r.name
    for r in ROWS
    if r.how in ("compiled", "composed", "called")
    and not r.name.startswith(("random.", "ufunc"))
    or (r.how == "break" and r.name.startswith(OF_ARRAYS))
    or r.name in ("array2string", "base_repr", "may_share_memory", "polymul", "roots", "unique_values", "trim_zeros", "fromiter")
]
if os.environ.get("CINDUCTOR_COVERAGE") != "all":  # the rest takes 10 seconds
    LISTED = LISTED[::3]


@pytest.mark.parametrize("name", LISTED)
def test_a_row_says_what_happens(name):
    row = ROWS.rows[name]
    found = sample(row)
    if found is None:
        pytest.skip("no arguments here show what becomes of it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        became = outcome(*found)
    expected = {"break": ["break"], "compiled": ["whole"]}.get(row.how, ["whole", "called"])
    assert became in expected, (row, found[1])


def test_every_public_callable_has_a_row():
    for name in np.__all__:
        if name[0] != "_" and callable(getattr(np, name, None)) and type(getattr(np, name)) is not type(np):
            assert name in ROWS.rows, name
    for owner, names in (("linalg", np.linalg.__all__), ("fft", np.fft.__all__)):
        assert {f"{owner}.{n}" for n in names if callable(getattr(getattr(np, owner), n))} <= set(ROWS.rows)
    assert {f"ndarray.{n}" for n in dir(np.ndarray) if n[0] != "_" and callable(getattr(np.ndarray, n))} <= set(ROWS.rows)


def test_breaks_have_reasons_and_nothing_else_has():
    assert set(ROWS.counts()) == set(MEANINGS)
    for row in ROWS:
        assert bool(row.reason) == (row.how == "break"), row


def test_known_rows():
    for name, how in {
        "add": "compiled",
        "where": "compiled",
        "matmul": "called",
        "linalg.svd": "called",
        "nanmean": "composed",
        "result_type": "answered",
        "savez": "break",
        "random.normal": "called",
        "ndarray.sum": "compiled",
        "ufunc.reduce": "compiled",
    }.items():
        assert ROWS.rows[name].how == how, ROWS.rows[name]


def test_it_prints():
    text = str(ROWS)
    assert f"NumPy {np.__version__}" in text and len(text.splitlines()) > len(ROWS)
    assert repr(ROWS).startswith(f"<coverage of {len(ROWS)} callables")
    assert all(f"`{row.name}`" in ROWS.markdown() for row in ROWS)
