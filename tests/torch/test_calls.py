"""Tests calls of a program with tensors: conversion between torch and the core, and when a call falls back to eager."""

import gc
import resource
import sys
import threading
import weakref

import agreement  # noqa: F401  (skips without torch)
import numpy as np
import pytest
import torch

from cinductor import _core
from cinductor.torch import library
from cinductor.torch.lowered import product

pytestmark = pytest.mark.skipif(library.torch_functions() is None, reason="this torch has no exchange table")


class Eager:
    """The fallback that a program calls if it cannot run with its arguments."""

    def __init__(self):
        self.calls = 0

    def __call__(self, args):
        self.calls += 1
        return ["eager"]


def whole(index, sizes, strides):
    return "part", index, sizes, strides, 0, "f32"


def test_arguments_are_read_where_they_lie_and_results_are_torchs():
    f = program_of_add(Eager())
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    args = [x, y]
    (made,) = f(args)
    assert args == []  # the list is emptied, as torch expects
    assert torch.equal(made, x + y) and made.untyped_storage().resizable()
    assert made.untyped_storage().nbytes() == 48 and not made.requires_grad


def builder(types, *symbols):
    b = _core.Builder("f")
    for s in symbols:
        b.symbol(s)
    return b, [b.input(t) for t in types]


def built(b, results, inputs, returns, eager=None, writes=(), functions=None):
    for base, value in writes:
        b.write(base, value)
    b.results(results)
    return _core.TensorProgram(_core.compile_graph(b), functions or library.torch_functions(), inputs, returns, eager or Eager())


def test_a_written_input_is_written_in_place():
    b, (x,) = builder(["f32[5]"])
    f = built(b, [], [0], [("input", 0)], writes=[(x, b.node("add", (x, x)))])
    t = torch.arange(5.0)
    at = t.data_ptr()
    (made,) = f([t])
    assert made is t and t.data_ptr() == at and t.tolist() == [0, 2, 4, 6, 8]


def test_strides_are_those_asked_for():
    b, (x,) = builder(["f32[1,3,4]"])
    doubled = b.node("add", (x, x))
    moved = b.node("copy", [doubled], "f32[1,3,4] order [0,2,1]")
    f = built(b, [moved, doubled], [0], [whole(0, [1, 3, 4], [99, 1, 3]), whole(1, [1, 3, 4], [12, 4, 1])])
    t = torch.randn(1, 3, 4)
    a, c = f([t])
    assert a.stride() == (99, 1, 3) and c.stride() == (12, 4, 1)
    assert torch.equal(a, t + t) and torch.equal(c, t + t)


def test_parts_share_the_memory_of_their_base():
    b, (x,) = builder(["f32[3,4]"])
    y = b.node("add", (x, x))
    f = built(b, [y], [0], [whole(0, [3, 4], [4, 1]), ("part", 0, [4, 3], [1, 4], 0, "f32"), ("part", 0, [2, 4], [4, 1], 4, "f32")])
    t = torch.randn(3, 4)
    base, turned, rows = f([t])
    assert base.data_ptr() == turned.data_ptr() and rows.data_ptr() == base[1:].data_ptr()
    assert torch.equal(turned, base.t()) and torch.equal(rows, base[1:])
    base.zero_()
    assert not turned.any() and not rows.any()
    del base, turned
    gc.collect()
    rows.fill_(3.0)
    assert rows.sum() == 24


def test_returns_without_memory_of_their_own_are_copied():
    b, (x,) = builder(["f32[4]"])
    f = built(b, [x, x], [0], [("result", 0), ("result", 1)])
    t = torch.randn(4)
    a, c = f([t])
    assert len({t.data_ptr(), a.data_ptr(), c.data_ptr()}) == 3
    assert torch.equal(a, t) and torch.equal(c, t)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128"]
)
def test_each_dtype_comes_and_goes(dtype):
    from cinductor.torch.promote import WORDS

    dtype = getattr(torch, dtype)
    b, (x, y) = builder([f"{WORDS[dtype]}[4]", f"{WORDS[dtype]}[]"])
    f = built(b, [b.node("copy", [x], f"{WORDS[dtype]}[4]"), y], [0, 1], [("result", 0), ("result", 1)])
    t = torch.tensor([0, 1, 2, 3]).to(dtype)
    a, zero = f([t, t[1]])
    assert a.dtype == zero.dtype == dtype and torch.equal(a, t)
    assert zero.shape == () and isinstance(zero, torch.Tensor) and torch.equal(zero, t[1])
    assert zero.data_ptr() != t[1].data_ptr()


def test_numbers_and_sizes():
    b, (x, n, factor) = builder(["f64[s0]", "python i64[]", "python f64[]"], "s0 in [2, inf) from in1 hint 4")
    y = b.node("multiply", (b.node("add", (x, b.node("cast", [n], "python f64[]"))), factor))
    f = built(b, [y], [0, 1, 2], [("part", 0, ["s0"], [1], 0, "f64"), ("size", "2*s0 + 1"), ("size", 3), ("constant", None)])
    t = torch.arange(4.0, dtype=torch.float64)
    made, size, three, none = f([t, 4, float("nan")])
    assert made.isnan().all() and (size, three, none) == (9, 3, None)
    made, size, *_ = f([torch.ones(7, dtype=torch.float64), 7, 0.5])
    assert made.tolist() == [4.0] * 7 and size == 15


def test_a_number_that_contradicts_a_size_is_eagers():
    eager = Eager()
    b, (x, n) = builder(["f64[s0]", "python i64[]"], "s0 in [2, inf) from in1 hint 4")
    f = built(b, [b.node("add", (x, x))], [0, 1], [("result", 0)], eager)
    assert f([torch.ones(4, dtype=torch.float64), 100]) == ["eager"]


def sum_of_two(eager):
    b, (x, y) = builder(
        ["f32[s0]", "f32[s1]"], "s0 in [2, inf) from in0.sizes 0 hint 4", "s1 in [2, inf) from in1.sizes 0 hint 4"
    )
    return built(b, [b.node("add", (x, y))], [0, 1], [whole(0, ["s0"], [1])], eager)


def test_sizes_that_break_a_guard_are_eagers():
    eager = Eager()
    f = sum_of_two(eager)
    assert f.program.guards == (("==", "s0", "s1", 0),)
    assert torch.equal(f([torch.ones(6), torch.ones(6)])[0], torch.full((6,), 2.0))
    args = [torch.ones(4), torch.ones(3)]
    assert f(args) == ["eager"] and len(args) == 2
    assert f([torch.ones(1), torch.ones(1)]) == ["eager"]  # out of a symbol's range


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: torch.ones(3, 5),
        lambda: torch.ones(12),
        lambda: torch.ones(3, 4, dtype=torch.float64),
        lambda: torch.ones(3, 4, device="meta"),
        lambda: torch.ones(3, 4).to_sparse(),
        lambda: torch.ones(3, 4).as_subclass(type("Sub", (torch.Tensor,), {})),
        lambda: np.ones((3, 4), "f4"),
        lambda: None,
    ],
)
def test_what_a_program_is_not_for_eager_runs(wrong):
    f = program_of_add(eager := Eager())
    assert f([wrong(), torch.ones(3, 4)]) == f([torch.ones(3, 4), wrong()]) == ["eager"]
    assert eager.calls == 2


def program_of_add(eager):
    b, (x, y) = builder(["f32[3,4]", "f32[3,4]"])
    return built(b, [b.node("add", (x, y))], [0, 1], [whole(0, [3, 4], [4, 1])], eager)


def test_a_tensor_without_memory_is_refused():
    """Eager would end the process. A tensor without elements needs no memory."""
    f = program_of_add(eager := Eager())
    x = torch.ones(3, 4)
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="argument 1 of a compiled graph has elements and no memory"):
        f([torch.ones(3, 4), x])
    x.untyped_storage().resize_(48)
    assert torch.equal(f([x.fill_(2), x])[0], x + x) and not eager.calls


def test_other_strides_are_copied():
    f = program_of_add(eager := Eager())
    x, y = torch.randn(4, 3).t(), torch.randn(3, 8)[:, ::2]
    (made,) = f([x, y])
    assert torch.equal(made, x + y) and made.stride() == (4, 1) and not eager.calls
    z = torch.randn(1, 1).expand(3, 4)
    assert torch.equal(f([z, y])[0], z + y)


def test_a_written_input_of_other_strides_is_eagers():
    b, (x,) = builder(["f32[3,4]"])
    f = built(b, [], [0], [("input", 0)], eager := Eager(), writes=[(x, b.node("add", (x, x)))])
    t = torch.randn(4, 3).t()
    assert f([t]) == ["eager"] and eager.calls == 1


def test_lazy_bits_are_resolved():
    b, (x,) = builder(["c64[3]"])
    f = built(b, [b.node("add", (x, x))], [0], [("result", 0)])
    t = torch.randn(3, dtype=torch.complex64)
    assert torch.equal(f([t.conj()])[0], (t + t).conj().resolve_conj())
    b, (x,) = builder(["f32[3]"])
    g = built(b, [b.node("add", (x, x))], [0], [("result", 0)])
    assert torch.equal(g([t.conj().imag])[0], -2 * t.imag)
    assert torch.equal(g([torch._neg_view(t.real)])[0], -2 * t.real)


def test_a_failed_check_leaves_everything_as_it_was():
    b, (x,) = builder(["f32[4]"])
    b.check(b.node("all", [b.node("greater", (x, b.const("f32[]", 0.0)))], axes=[0]), "positive", None, 0)
    f = built(b, [], [0], [("input", 0)], eager := Eager(), writes=[(x, b.node("add", (x, x)))])
    t = torch.tensor([1.0, -1.0, 2.0, 3.0])
    assert f([t]) == ["eager"] and t.tolist() == [1.0, -1.0, 2.0, 3.0]
    assert f([good := torch.ones(4)]) == [good] and good.tolist() == [2.0] * 4 and eager.calls == 1


def test_empty_and_offset_tensors():
    b, (x,) = builder(["f32[0,3]"])
    f = built(b, [b.node("add", (x, x))], [0], [whole(0, [0, 3], [3, 1])])
    assert f([torch.empty(0, 3)])[0].shape == (0, 3)
    f = program_of_add(Eager())
    t = torch.randn(9, 4)
    assert torch.equal(f([t[2:5], t[6:]])[0], t[2:5] + t[6:])


def test_parameters_and_tensors_with_gradients():
    f = program_of_add(eager := Eager())
    w = torch.nn.Parameter(torch.randn(3, 4))
    (made,) = f([w, w * 2])
    assert torch.equal(made, (3 * w).detach()) and not eager.calls


def test_a_constant_is_kept_alive():
    b, (x, c) = builder(["f32[3]", "f32[3]"])
    held = torch.tensor([1.0, 2.0, 3.0])
    f = built(b, [b.node("add", (x, c))], [0, held], [("result", 0)])
    del held
    gc.collect()
    assert f([torch.zeros(3)])[0].tolist() == [1, 2, 3]


def test_references_and_memory_come_back():
    f = program_of_add(Eager())
    x, y = torch.randn(3, 4), torch.randn(4, 3).t()
    before = sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(None)
    for _ in range(100):
        (made,) = f([x, y])
    assert sys.getrefcount(made) == 2
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before[:2] and abs(sys.getrefcount(None) - before[2]) < 50
    large, t = program_of_large(), torch.zeros(1 << 20)
    large([t])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):  # 800 MB if they were kept
        large([t])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (400 << 10)


def program_of_large(functions=None):
    b, (x,) = builder([f"f32[{1 << 20}]"])
    y = b.node("add", (x, x))
    return built(b, [y], [0], [whole(0, [1 << 20], [1]), ("part", 0, [7], [2], 3, "f32")], functions=functions)


def test_memory_comes_back_if_torch_refuses_it(monkeypatch):
    def refuse(capsules):
        raise TypeError("no tensors today")

    monkeypatch.setattr(torch._C._aoti, "alloc_tensors_by_stealing_from_void_ptrs", refuse)
    large, t = program_of_large(library.torch_functions.__wrapped__()), torch.zeros(1 << 20)
    before = None
    for _ in range(200):  # 800 MB, were they kept
        with pytest.raises(TypeError, match="no tensors today"):
            large([t])
        before = before or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + (400 << 10)


def test_threads():
    b, (x, y) = builder(["f32[s0]", "f32[s0]"], "s0 in [2, inf) from in0.sizes 0 hint 4")
    f = built(b, [b.node("add", (x, y))], [0, 1], [whole(0, ["s0"], [1]), ("size", "s0")])
    wrong = []

    def work(seed):
        for k in range(60):
            n = 2 + (seed * 7919 + k * 104729) % 200_000
            made, size = f([torch.full((n,), float(seed)), torch.ones(n)])
            if size != n or made.shape != (n,) or not bool((made == seed + 1).all()):
                wrong.append((seed, n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_many_inputs():
    b, xs = builder(["f32[3]"] * 30)
    total = xs[0]
    for x in xs[1:]:
        total = b.node("add", (total, x))
    f = built(b, [total], list(range(30)), [("result", 0)])
    assert f([torch.full((3,), float(k)) for k in range(30)])[0].tolist() == [435.0] * 3


@pytest.mark.parametrize(
    "inputs, returns, words",
    [
        ([0], [("result", 0)], "takes 2 inputs"),
        ([0, -1], [("result", 0)], "number of an argument"),
        ([0, 1], [("result", 1)], "no return 1"),
        ([0, 1], [("parts", 0)], "tuple of a kind"),
        ([0, 1], [("part", 0, [3, 4], [4], 0, "f32")], "a stride for each size"),
        ([0, 1], [("part", 0, [3, 4], [4, 1], 0, "f33")], "no dtype f33"),
        ([0, 1], [("size", "s7")], "s7"),
    ],
)
def test_a_wrong_recipe_is_refused(inputs, returns, words):
    b, (x, y) = builder(["f32[3,4]", "f32[3,4]"])
    with pytest.raises((ValueError, SyntaxError, TypeError), match=words):
        built(b, [b.node("add", (x, y))], inputs, returns)


# ---- library calls ----


def compiled(function, *tensors):
    """The compiled functional ATen graph of a function."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    from cinductor.torch.entry import compile_fx

    with FakeTensorMode(allow_non_fake_inputs=True):
        gm = make_fx(function, tracing_mode="fake")(*tensors)
    return compile_fx(gm, tensors, name="calls", options={"numerics": "close"}, is_strict=True)


PRODUCTS = {
    "mm": (lambda a, b: torch.ops.aten.mm(a, b), (3, 4), (4, 5)),
    "mm of views": (lambda a, b: torch.ops.aten.mm(a.t(), b[:, 1:4]), (4, 3), (4, 6)),
    "mm of reversed axes": (lambda a, b: torch.ops.aten.mm(a.flip(0), b.flip(1)), (3, 4), (4, 6)),
    "bmm": (lambda a, b: torch.ops.aten.bmm(a, b), (2, 3, 4), (2, 4, 5)),
    "addmm": (lambda c, a, b: torch.ops.aten.addmm(c, a, b.t()), (5,), (3, 4), (5, 4)),
    "addmm with factors": (lambda c, a, b: torch.ops.aten.addmm(c, a, b, beta=0.5, alpha=2), (3, 5), (3, 4), (4, 5)),
    "baddbmm": (lambda c, a, b: torch.ops.aten.baddbmm(c, a, b, beta=0), (2, 3, 5), (2, 3, 4), (2, 4, 5)),
    "no rows": (lambda a, b: torch.ops.aten.mm(a, b), (0, 4), (4, 5)),
    "nothing to add up": (lambda a, b: torch.ops.aten.mm(a, b), (3, 0), (0, 5)),
}


@pytest.fixture(name="large")
def _large(monkeypatch):
    """Products and convolutions of any size are library calls."""
    monkeypatch.setattr(product, "MAX_STEPS", 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_called_without_python(name, dtype, monkeypatch, large):
    function, *sizes = PRODUCTS[name]
    tensors = [torch.randn(s).to(dtype) for s in sizes]
    artifact = compiled(function, *tensors)
    assert artifact.run.program.externs == 1 or not all(tensors[0].shape)

    def fail(*args):
        raise AssertionError("Python was called")

    monkeypatch.setattr(library.Call, "run", fail)
    torch.testing.assert_close(artifact(list(tensors))[0], function(*tensors))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64], ids=str)
def test_small_products_are_kernels(dtype):
    tensors = {name: [(torch.randn(s) * 3).to(dtype) for s in sizes] for name, (_, *sizes) in PRODUCTS.items() if "factors" not in name}

    def function(*given):
        left = list(given)
        return [PRODUCTS[name][0](*(left.pop(0) for _ in row)) for name, row in tensors.items()]

    given = [t for row in tensors.values() for t in row]
    artifact = compiled(function, *given)
    assert artifact.run.program.externs == 0
    for got, wanted in zip(artifact(list(given)), function(*given), strict=True):
        torch.testing.assert_close(got, wanted)


def test_which_products_are_kernels():
    """Products of few steps with short sums are kernels. Products of sizes that are not known are calls."""
    for sizes, externs in [((64, 64, 64), 0), ((65, 64, 64), 1), ((4, 1025, 4), 1), ((4, 1024, 4), 0)]:
        m, k, n = sizes
        tensors = torch.randn(m, k), torch.randn(k, n)
        assert compiled(torch.ops.aten.mm.default, *tensors).run.program.externs == externs, sizes


aten = torch.ops.aten


def convolution_gradients(mask):
    def function(g, x, w):
        found = aten.convolution_backward.default(g, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, mask)
        return [t for t in found if t is not None]

    return function


DISPATCHED = {
    "tensors, lists of ints, bools": (lambda x, w, b: aten.convolution.default(x, w, b, [1, 1], [1, 1], [1, 1], False, [0, 0], 1), (2, 3, 6, 6), (4, 3, 3, 3), (4,)),
    "no tensor": (lambda x, w: aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), (2, 3, 6, 6), (4, 3, 3, 3)),
    "three results": (convolution_gradients([True, True, True]), (2, 4, 6, 6), (2, 3, 6, 6), (4, 3, 3, 3)),
    "no first result": (convolution_gradients([False, True, False]), (2, 4, 6, 6), (2, 3, 6, 6), (4, 3, 3, 3)),
    "two dtypes": (lambda x: aten.topk.default(x, 3), (7,)),
    "a bool by name": (lambda x: aten.sort.stable(x, stable=True, descending=True), (3, 7)),
    "a list of tensors": (lambda x, y: aten._stack.default([x, y, x], 1), (3, 4), (3, 4)),
    "a float that is left out": (lambda q: aten._scaled_dot_product_flash_attention_for_cpu.default(q, q, q)[0], (1, 2, 8, 8)),
    "a float that is given": (lambda q: aten._scaled_dot_product_flash_attention_for_cpu.default(q, q, q, scale=0.5)[0], (1, 2, 8, 8)),
    "strides": (lambda x: aten.lgamma.default(x.t()[1:]), (3, 4)),
    "reversed axes": (lambda x, y: aten._stack.default([x.flip(0), y.flip(0, 1), x], 1), (3, 4), (3, 4)),
    "nothing": (lambda x: aten.lgamma.default(x), (0, 4)),
}


@pytest.mark.parametrize("name", DISPATCHED)
def test_operators_are_called_without_python(name, monkeypatch, large):
    function, *sizes = DISPATCHED[name]
    tensors = [torch.randn(s) for s in sizes]
    artifact = compiled(function, *tensors)

    def fail(*args):
        raise AssertionError("Python was called")

    monkeypatch.setattr(library.Call, "run", fail)
    wanted = function(*tensors)
    for got, one in zip(artifact(list(tensors)), wanted if isinstance(wanted, (list, tuple)) else [wanted], strict=True):
        torch.testing.assert_close(got, one)


def test_a_wrong_plan_of_a_call_is_refused():
    functions = library.torch_functions()
    for arguments in ([(0,)], [0], [(0, "1")], [(3, 7)], [(9, 1)], [(4, 1)]):
        with pytest.raises((TypeError, ValueError)):
            _core.aten_call(functions, "aten::lgamma", "", arguments, 1)
    call = _core.aten_call(functions, "aten::lgamma", "", [(library.TENSOR, 0)], 1)
    with pytest.raises(ValueError, match="no result 1"):
        _core.add_extern("wrong", "wrong", library.OpResult(None, 1, True, (call, 1, True)))


def test_results_of_one_call_belong_together_in_each_thread():
    def function(x):
        values, places = torch.ops.aten.sort.default(x)
        return values * 2, places

    x = torch.randn(400)
    artifact, wrong = compiled(function, x), []

    def work(seed):
        g = torch.Generator().manual_seed(seed)
        for _ in range(40):
            t = torch.randn(400, generator=g)
            values, places = artifact([t])
            if not torch.equal(values, t[places] * 2):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_call_may_have_many_operands():
    tensors = [torch.full((2,), float(k)) for k in range(100)]
    artifact = compiled(lambda *xs: torch.ops.aten._stack.default(list(xs)).cumsum(0), *tensors)
    assert torch.equal(artifact(list(tensors))[0], torch.stack(tensors).cumsum(0))


def test_one_thread_at_a_time_replaces_the_key_of_the_cache():
    """Two threads that leave in the order in which they entered would leave the replacement in torch."""
    from torch._dynamo.convert_frame import compile_lock
    from torch._inductor.codecache import FxGraphHashDetails

    from cinductor.torch.entry import key_without_inductor

    def enter():
        taken.append(compile_lock.acquire(blocking=False))

    before, taken = FxGraphHashDetails.__init__, []
    with pytest.raises(KeyError), key_without_inductor():
        assert FxGraphHashDetails.__init__ is not before
        other = threading.Thread(target=enter)
        other.start()
        other.join()
        raise KeyError
    assert taken == [False] and FxGraphHashDetails.__init__ is before


class Watched:
    """A function of a library call that notes whether an object is alive."""

    torch_call = None

    def __init__(self):
        self.torch_functions, self.ref, self.alive = library.torch_functions(), None, []

    def __call__(self, x, out):
        self.alive.append(self.ref() is not None)
        out.copy_(x)


@pytest.mark.parametrize(("n", "is_kept", "is_checked", "is_alive"), [(200, False, False, False), (200, True, False, True), (200, False, True, True), (2, False, False, True)])
def test_an_argument_is_freed_after_its_last_use(n, is_kept, is_checked, is_alive):
    """Unless the caller has it, a check may fail later, or it is small."""
    watched = Watched()
    _core.add_extern("watched", f"{n} {is_kept} {is_checked}", watched)
    b, (x,) = builder([f"f32[{n},{n}]"])
    result = b.node("extern", [b.node("exp", [x], f"f32[{n},{n}]")], f"f32[{n},{n}]", name="watched", key=f"{n} {is_kept} {is_checked}")
    if is_checked:
        b.check(b.node("all", [b.node("greater", [result, b.const("f32[]", 0.0)], f"bool[{n},{n}]")], "bool[]", axes=[0, 1]), "positive", "", 0)
    b.results([result])
    program = _core.compile_graph(b, options={"drop_arguments": True})
    eager = Eager()
    f = _core.TensorProgram(program, library.torch_functions(), [0], [whole(0, [n, n], [n, 1])], eager)
    args = [torch.randn(n, n)]
    wanted, watched.ref = args[0].exp(), weakref.ref(args[0])
    kept = args[0] if is_kept else None
    (made,) = f(args)
    torch.testing.assert_close(made, wanted)
    assert watched.alive == [is_alive] and args == [] and eager.calls == 0
    assert ("del in0" in program.text("wrapper")) == (n == 200)
    del kept
