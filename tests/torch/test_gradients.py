"""Tests training: gradients, optimizers, saved values, exported programs."""

import functools
import re

import numpy as np
import pytest
from agreement import agree, compiled, same_values
from features import rand
from models import UNet

# isort: split
import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

import cinductor.torch
from cinductor.torch.entry import compile_graph_module


def test_batch_norm_statistics():
    # Without a bias: before a normalisation its gradient is 0, and eager's consists of rounding errors.
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    agree(net, rand((2, 3, 8, 8)), rand((2, 3, 8, 8)), backward=True)
    net.zero_grad()
    agree(net.eval(), rand((2, 3, 8, 8)))


def test_a_cache_is_written_in_place():
    def fn(cache, x, at):
        cache[:, at] = x * 2
        cache.index_copy_(1, at + 1, x)
        return cache.sum(1), cache[:, :3]

    agree(fn, lambda: (torch.zeros(2, 6, 3), torch.randn(2, 2, 3), torch.tensor([1, 3])))


@pytest.mark.parametrize(
    "optimizer",
    [
        functools.partial(torch.optim.SGD, lr=0.1),
        functools.partial(torch.optim.SGD, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        functools.partial(torch.optim.AdamW, lr=0.01),
        functools.partial(torch.optim.Adam, lr=0.01, amsgrad=True, foreach=False),
        functools.partial(torch.optim.RMSprop, lr=0.01),
    ],
)
def test_optimizer_steps(optimizer):
    """Also what torch takes them apart into for its own compiler is in the core."""
    made_graphs = []

    def backend(gm, inputs):
        return compile_graph_module(gm, inputs, None, {"strict": True}, made_graphs)

    def train(step_of):
        torch.manual_seed(0)
        weights = [torch.nn.Parameter(torch.randn(s)) for s in ((3, 4), (4,), ())]
        made = optimizer(weights)
        step = step_of(made.step)
        for k in range(4):
            for w in weights:
                w.grad = torch.cos(w.detach() + k)
            step()
        return [w.detach() for w in weights]

    torch._dynamo.reset()
    for a, b in zip(train(lambda step: torch.compile(step, backend=backend)), train(lambda step: step)):
        same_values(a, b)
    assert made_graphs and not [node for made in made_graphs for node in made.nodes if node[1] != "core"]


def test_autocast():
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4))

    def fn(x):
        with torch.autocast("cpu", torch.bfloat16):
            return net(x).softmax(-1)

    agree(fn, rand((5, 8)), tolerance=2e-2)


def test_functional_transforms():
    def loss(w, x):
        return torch.tanh(x @ w).square().sum()

    agree(lambda w, x: torch.func.grad(loss)(w, x), rand((4, 3), (5, 4)))
    agree(lambda w, x: torch.vmap(lambda row: torch.tanh(row @ w))(x), rand((4, 3), (5, 4)))
    agree(lambda w, x: torch.func.jvp(lambda v: (v * x).sin(), (w,), (x,))[1], rand((4,), (4,)))


def test_dual_numbers():
    """A graph that was compiled outside of a level is called inside, too."""
    fast, x = compiled(lambda x, w: (x.sin() * w, x + 1)), torch.ones(3)
    wanted = fast(x, x)
    with forward_ad.dual_level():
        made = fast(forward_ad.make_dual(x, 2 * x), x)
        tangents = [forward_ad.unpack_dual(y).tangent for y in made]
        for got, value in zip(made, wanted, strict=True):
            same_values(forward_ad.unpack_dual(got).primal, value)
    same_values(tangents[0], 2 * x.cos())
    same_values(tangents[1], 2 * x)


def test_backward_twice():
    def net(x):
        return (x.sin() * x.exp()).cumsum(0).sum()  # saves values that the forward computes

    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    a, b = compiled(net)(x), net(y)
    for out in a, b:
        out.backward(retain_graph=True)
        out.backward()
    same_values(x.grad, y.grad)
    z = torch.ones(3, requires_grad=True)
    (first,) = torch.autograd.grad(compiled(net)(z), z, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        first.sum().backward()


def test_compiled_autograd():
    """Dynamo's graph of a backward takes a list of tensors."""
    found = []
    for backend in ("eager", cinductor.torch.backend):
        torch.manual_seed(0)
        net, x = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh()), torch.randn(5, 4)
        torch._dynamo.reset()
        with torch._dynamo.config.patch(compiled_autograd=True):
            torch.compile(lambda net, x: net(x).square().sum().backward(), backend=backend)(net, x)
        found.append([p.grad for p in net.parameters()])
    torch.testing.assert_close(found[1], found[0])


def test_what_autograd_checks_before_a_backward():
    """A saved tensor that was written, by a compiled function or after one, and one whose memory was freed."""
    x, b = torch.ones(3, requires_grad=True), torch.full((3,), 2.0)
    y = x * 1
    z = y.sin()
    with torch.no_grad():
        compiled(lambda t: t.mul_(2))(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = compiled(lambda a, b: (a * b).sin())(x, b)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = compiled(lambda a, b: (a * b).sin() * b)(x, b)
    b.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="has elements and no memory"):
        z.sum().backward()


def test_a_library_call_has_operands_in_the_order_of_memory_that_torch_says():
    """The gradient of a kernel that a small convolution computes has an order of its own, and ATen's function of it reads C order."""
    made = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv2d(2, 3, 2))
    agree(made, rand((1, 2, 4, 4)), backward=True)


def test_gradients_of_some_inputs():
    def fn(x, y, z):
        return (x * y).sum(0), (y * 2).detach(), z + 1

    agree(fn, lambda: (torch.randn(3, 4), torch.randn(4, requires_grad=True), torch.arange(3)), backward=True)


def test_views_saved_for_the_backward():
    """Activations that eager saves as views with gaps in memory."""

    def fn(x, w):
        q, k, v = (x @ w).chunk(3, -1)
        return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).transpose(0, 1).tanh()

    make = lambda: (torch.randn(2, 5, 4, requires_grad=True), torch.randn(4, 12, requires_grad=True))  # noqa: E731
    agree(fn, make, backward=True)
    agree(fn, make, backward=True, dynamic=True)


def artifacts(fn, make):
    """The compiled graphs of a training step: forward, backward."""
    torch._dynamo.reset()
    made = []
    torch.compile(fn, backend=lambda gm, inputs: compile_graph_module(gm, inputs, None, {"strict": True}, made))(*make()).sum().backward()
    return {a.name: a for a in made}


@pytest.mark.parametrize(
    "pool",
    [
        lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool3d(x[None], 2), lambda x: F.adaptive_avg_pool2d(x, 2), lambda x: F.adaptive_avg_pool3d(x[None], 2),
        lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool3d(x[None], 2), lambda x: F.avg_pool2d(x.contiguous(memory_format=torch.channels_last), 2),
    ],
)  # fmt: skip
def test_pooling_saves_no_values(pool):
    """A gradient of pooling that only reads sizes keeps no array alive."""

    def fn(x, w):
        return pool((x @ w).view(2, 4, 12, 12))

    make = lambda: (torch.randn(96, 12), torch.randn(12, 12, requires_grad=True))  # noqa: E731
    agree(fn, make, backward=True)
    agree(fn, make, backward=True, dynamic=True)
    saved = artifacts(fn, make)["forward"]._graph_module.graph.output_node().args[0]
    pooled = [x for x in saved if isinstance(x, torch.fx.Node) and x.target in (torch.ops.aten.mm.default, torch.ops.aten.view.default)]
    assert all(x.meta["val"].numel() < 96 * 12 for x in pooled)


def planned(artifact):
    """The most bytes that a program allocates at once, its results included, and the text of its plan."""
    text = artifact.run.program.text("wrapper")
    return int(re.search(r"(?:at most|about) (\d+) bytes", text)[1]), text


def test_the_memory_of_a_training_step():
    """In units of one activation of the U-Net's first layer: the plans of both graphs, and what the forward graph saves."""
    unit = 4 * 64 * 64 * 64 * 4
    made = artifacts(UNet(8), lambda: (torch.randn(4, 3, 64, 64),))
    (forward, _), (backward, text) = planned(made["forward"]), planned(made["backward"])
    saved = sum(x.meta["val"].untyped_storage().nbytes() for x in made["backward"]._graph_module.graph.find_nodes(op="placeholder"))
    assert forward < 5.3 * unit and backward < 6.1 * unit and saved < 4.5 * unit
    assert not re.search(r"pool\d+ = empty\(\((\d{7,}),", text)  # large buffers are in no pool, so that each is freed by itself
    assert text.index("extern0(") < text.index("k1(")  # targets of scatters are filled late


def reads_before_writes(w, u, v):
    t = u.exp()
    s = v.view(4, 1).tanh()
    with torch.no_grad():
        u.add_(1)
        v.copy_(w.sum(0) * s[:, 0])
    return (w * t[:, None]).sin() @ s * v.clone().sum()


def test_a_written_input_is_not_saved():
    """The backward needs the values that the inputs had before the forward wrote them."""
    agree(reads_before_writes, lambda: (torch.randn(3, 4, requires_grad=True), torch.randn(3), torch.randn(4)), backward=True)


def test_an_exported_program():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)).eval()
    program = torch.export.export(net, (torch.randn(3, 4),))
    agree(program.module(), rand((3, 4)))


class Served(torch.nn.Module):
    """Arguments and results of several kinds, a buffer and a constant."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("scale", torch.tensor([2.0, 3.0, 4.0]))
        self.table = torch.arange(3)

    def forward(self, x, options, factor=1.0, *, mask=None):
        y = (self.layer(x) * self.scale + self.table) * factor
        options["sums"].add_(y.sum(0))
        return {"y": y, "n": x.shape[0], "more": [y.t(), x, F.softmax(y @ y.t(), -1)], "none": mask}


class Images(torch.nn.Module):
    """Ops that a library computes elsewhere: convolutions of all kinds, pooling, attention."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Conv2d(4, 6, 3, 2, 1, 2, groups=2).to(memory_format=torch.channels_last)
        self.b = torch.nn.ConvTranspose2d(6, 4, (3, 2), (2, 3), (1, 3), (1, 0), groups=2, dilation=(1, 2))
        self.norm = torch.nn.BatchNorm2d(6)

    def forward(self, x):
        y = self.b(F.relu(self.norm(self.a(x))))
        values, places = F.max_pool2d(y, 3, 2, 1, 1, True, return_indices=True)
        q = values.flatten(2)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True), places, F.max_pool2d(y, [2], dilation=2)


def test_packages_of_exported_programs(tmp_path):
    """Weights are constants of the file, the batch has any size, and a call needs no torch."""
    torch.manual_seed(0)
    served, images, batch = Served(), Images().eval(), torch.export.Dim("batch")
    arguments = (torch.randn(5, 4), {"sums": torch.zeros(3)}, 2.0)
    shapes = {"x": {0: batch}, "options": {"sums": None}, "factor": None, "mask": None}
    programs = {
        "served": torch.export.export(served, arguments, {"mask": None}, dynamic_shapes=shapes),
        "images": torch.export.export(images, (torch.randn(2, 4, 9, 9),)),
    }
    assert cinductor.torch.package(tmp_path / "models", programs) == ["served", "images"]
    made = cinductor.load(tmp_path / "models")
    for n in (5, 1, 8):
        x, sums = torch.randn(n, 4), [torch.ones(3), np.ones(3, "f4")]
        wanted = served(x, {"sums": sums[0]}, 2.0)
        got = made["served"](x.numpy(), {"sums": sums[1]}, 2.0, mask=None)
        assert list(got) == list(wanted) and got["n"] == n and got["none"] is None
        for a, b in zip([got["y"], *got["more"], sums[1]], [wanted["y"], *wanted["more"], sums[0]]):
            torch.testing.assert_close(torch.from_numpy(a), b.detach())
    x = torch.randn(2, 4, 9, 9)
    for a, b in zip(made["images"](x.numpy()), images(x)):
        torch.testing.assert_close(torch.from_numpy(a), b.detach())
    for wrong, why in [((x.numpy()[:, :, :3],), "axis 2"), ((x.double().numpy(),), "float64")]:
        with pytest.raises((TypeError, ValueError), match=why):
            made["images"](*wrong)
    with pytest.raises(ValueError, match="factor is 1.0"):
        made["served"](np.ones((5, 4), "f4"), {"sums": np.ones(3, "f4")}, 1.0, mask=None)


def test_exported_casts_and_elements(tmp_path):
    """torch.export asserts dtypes at each cast, and takes a number out of a tensor by an op that eager takes apart."""
    x = torch.randn(3, 3)
    fn = FunctionModule(lambda m, x: (x.to(torch.float64).sum(), (x * 4).long(), x + x[0, 0].item()))
    cinductor.torch.package(tmp_path / "casts", torch.export.export(fn, (x,)))
    for a, b in zip(cinductor.load(tmp_path / "casts")["forward"](x.numpy()), fn(x)):
        torch.testing.assert_close(torch.as_tensor(a), b)


def test_exported_programs_that_are_refused():
    def exported(fn, *args):
        return torch.export.export(FunctionModule(fn), args)

    x = torch.randn(3, 3)
    with pytest.raises(cinductor.Unsupported, match=r"aten.sort.default needs ATen, which an exported program does not call \(sorting\), .*test_gradients.py"):
        cinductor.torch.export(exported(lambda m, x: x.sort().values, x))
    with pytest.raises(cinductor.Unsupported, match="writes to seen, which is a constant"):
        cinductor.torch.export(exported(lambda m, x: m.seen.add_(1) + x, x))
    with pytest.raises(TypeError, match="no result of torch.export.export"):
        cinductor.torch.export(lambda x: x)
    with pytest.raises(ValueError, match="no form 'rust'"):
        cinductor.torch.export(exported(lambda m, x: x, x), "rust")


class FunctionModule(torch.nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, *args):
        return self.fn(self, *args)


def test_constants_of_the_graph():
    table = torch.arange(12.0).reshape(3, 4)
    agree(lambda x: x + table[1] + torch.tensor([1.0, 2.0, 3.0, 4.0]), rand((4,)))


def test_many_operands():
    agree(lambda *xs: (torch.cat(xs), torch.stack(xs).sum(0), sum(xs)), rand(*[(3,)] * 20))
