"""Tests custom ops, and operators that call functions: conditions, loops, attention."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
from agreement import agree, check
from features import rand, twice

# isort: split
import torch
import torch.nn.functional as F
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch.nn.attention.flex_attention import flex_attention

from cinductor.torch.entry import compile_graph_module


@torch.library.custom_op("cinductor_tests::pair", mutates_args=())
def pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + 1, x.sum(0)


@pair.register_fake
def _(x):
    return torch.empty_like(x), x.new_empty(x.shape[1:])


@torch.library.custom_op("cinductor_tests::bump", mutates_args=("x",))
def bump(x: torch.Tensor, by: float) -> None:
    x.add_(by)


@torch.library.custom_op("cinductor_tests::bump_two", mutates_args=("x", "y"))
def bump_two(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.add_(1)
    y.mul_(2)
    return x + y


@bump_two.register_fake
def _(x, y):
    return torch.empty_like(x)


def mutating(x):
    y = x * 3
    bump(y, 1.5)
    return y + 1


def mutating_an_argument(x):
    bump(x, 0.5)
    return x * 2


def mutating_two(x):
    y, z = x * 2, x + 1
    s = bump_two(y, z)
    return s, y, z


def mutating_a_view(x):
    y = x * 3
    bump(y[1:], 1.0)
    return y


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: twice(x + 1) - 1,
        lambda x: pair(x * 2),
        lambda x: pair(x.t())[1] + 1,
        mutating,
        mutating_an_argument,
        mutating_two,
        mutating_a_view,
    ],
)
def test_custom_ops(fn):
    agree(fn, rand((3, 4)))


def test_an_op_of_a_library_in_c(tmp_path):
    """Also in training, by a gradient that Python registers."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    source, library = Path(__file__).with_name("custom_op.c"), tmp_path / "custom_op.so"
    libraries = Path(torch.__file__).parent / "lib"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, f"-L{libraries}", "-ltorch_cpu", "-lc10", "-Wl,--allow-shlib-undefined"], check=True)
    loaded = ctypes.CDLL(str(library))
    assert loaded.add_op() == 0
    torch.library.register_fake("cinductor_in_c::halve", torch.empty_like)
    torch.library.register_autograd("cinductor_in_c::halve", lambda ctx, grad: grad / 2)
    before = ctypes.c_int64.in_dll(loaded, "calls").value
    agree(lambda x: torch.ops.cinductor_in_c.halve(x.t() * 3).sin(), lambda: (torch.randn(3, 4, requires_grad=True),), backward=True)
    assert ctypes.c_int64.in_dll(loaded, "calls").value == before + 2


def test_activations_are_computed_in_vectors():
    """The C compiler has no vectors of the error function: a call for each element took ten times eager's time."""
    made: list = []
    torch._dynamo.reset()
    fast = torch.compile(lambda x: (F.gelu(x), torch.erf(x), F.gelu(x.half())), backend=lambda gm, inputs: compile_graph_module(gm, inputs, None, {}, made))
    fast(torch.ones(64))
    assert "erff" not in made[0].run.program.text("source")


def test_effect_tokens():
    agree(lambda x: torch.linalg.inv(x + 4 * torch.eye(3)) @ x, rand((3, 3)), tolerance=1e-4)


CONTROL = {
    "cond": lambda x: torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos() + 1, (x,)) * 2,
    "cond of a transposed operand": lambda x: torch.cond(x.sum() > 0, lambda v: (v.t()[1:] * 1, v[0] * 2), lambda v: (v.t()[1:] + 1, v[1] + 1), (x.t(),)),
    "cond in cond with constants": lambda x: torch.cond(
        x.sum() > 0, lambda v: torch.cond(v.max() > 2, lambda u: u + torch.tensor([1.0, 2, 3, 4]), lambda u: u.softmax(0), (v,)), lambda v: v * 2, (x,)
    ),
    "cond with library calls": lambda x: torch.cond(x.sum() > 0, lambda v: v.sort(-1)[0] + v, lambda v: torch.rand_like(v) + v, (x,)),
    "loop in cond": lambda x: torch.cond(x.sum() > 0, lambda v: while_loop(lambda i, u: i < 3, lambda i, u: (i + 1, u * 2), (torch.tensor(0), v))[1], lambda v: v + 1, (x,)),
    "while_loop": lambda x: while_loop(lambda i, v: (i < 9) & (v.sum() < 50), lambda i, v: (i + 1, v.abs() * 1.5 + 0.1), (torch.tensor(0), x)),
    "loop in loop": lambda x: while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, torch.special.zeta(v.abs() + 1.5, v.abs() + 1)), (torch.tensor(0), x)),
    "scan of matrices": lambda x: scan(lambda c, v: ((v @ c).tanh(), (v.t() * 1, c.sum())), torch.ones(4, 4), x[:, :, None] * torch.ones(4), reverse=True),
    "scan": lambda x: scan(lambda c, v: (c + v, c * v), torch.zeros(4), x),
    "associative_scan": lambda x: associative_scan(lambda a, b: a + b, x, 0, combine_mode="generic"),
}


@pytest.mark.parametrize("name", CONTROL)
def test_conditions_and_loops(name):
    """The graph is not cut: branches and bodies are blocks of its regions. torch takes associative_scan apart."""
    made: list = []
    torch._dynamo.reset()
    fast = torch.compile(CONTROL[name], backend=lambda gm, inputs: compile_graph_module(gm, inputs, None, {"strict": True}, made), fullgraph=True)
    for make in rand((3, 4)), lambda: (-torch.ones(3, 4),), lambda: (torch.full((3, 4), 3.0),):
        check(CONTROL[name], fast, make)
    calls = [op for artifact in made for op, where, *_ in artifact.nodes if where == "library"]
    assert calls == {"cond with library calls": ["aten.sort.default", "aten.rand_like.default"]}.get(name, [])


def test_an_index_out_of_range_in_a_branch():
    """The branch that is not taken checks nothing."""

    def fn(x, i):
        return torch.cond(x.sum() > 0, lambda v, i: v[i], lambda v, i: v[:2] * 1, (x, i))

    wrong = torch.tensor([0, 9])
    agree(fn, lambda: (torch.ones(3, 4), torch.tensor([2, 0])), lambda: (-torch.ones(3, 4), wrong), lambda: (torch.ones(3, 4), wrong))


def test_loops_of_any_size():
    def fn(x):
        y = torch.cond(x.shape[0] > 4, lambda v: v.sin() * v.shape[0], lambda v: v.cos() + 1, (x,))
        return scan(lambda c, v: (c + v, c * v), torch.zeros(4), y)

    agree(fn, rand((3, 4)), rand((6, 4)), rand((5, 4)), dynamic=True)


def test_attention_with_a_function_of_scores():
    agree(lambda q: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s + i - j), rand((1, 2, 16, 16)), fullgraph=True)


def test_gradients_of_conditions_and_loops():
    norm = torch.nn.LayerNorm(4)  # which torch takes apart in a branch

    def fn(x, w):
        y = torch.cond(x.sum() > 0, lambda v: v.sin() * v, lambda v: norm(v) + 1, (x,))
        return scan(lambda c, v: ((c + v @ w).tanh(), c * v), torch.zeros(4), y)

    agree(fn, lambda: (torch.ones(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)), backward=True)
