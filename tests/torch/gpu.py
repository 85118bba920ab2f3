"""Graphs of torch on a CUDA device, compared with eager: gpu.py LIBRARY NAME....

LIBRARY is that of emulated_torch.c, with the fake driver of tests/cuda in the environment. Then torch's tensors stay on
the host, and the emitter and the core take them for tensors of the first device. Without it ("") the tensors are on a GPU.
"""

import contextlib
import copy
import ctypes
import os
import sys
import warnings

import agreement

# isort: split
import torch
import torch.nn.functional as F
from models import MODELS, Decoder

from cinductor import _core
from cinductor.torch import layout, library, output

GPU = torch.device("cuda", 0)
ON_GPU = torch.cuda.is_available()


def emulate(path):
    """Make cinductor take tensors of the host for tensors of a GPU."""
    shim = ctypes.CDLL(path)
    pointer, capsule = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    shim.emulated_table.restype, shim.emulated_table.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    name = b"dlpack_exchange_api"
    table = capsule(shim.emulated_table(pointer(torch.Tensor.__dlpack_c_exchange_api__, name)), name, None)
    wrap = torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs
    functions = _core.torch_functions(path, table, (torch.Tensor, torch.nn.Parameter), torch.Tensor.is_conj, torch.Tensor.is_neg, wrap)
    assert functions is not None
    for module in library, output:
        module.torch_functions = lambda: functions
    numbers = os.environ.get("EMULATED_NUMBERS_ON_HOST")
    layout.device_of = lambda t: layout.HOST if numbers and t.dim() == 0 else GPU


def place(values):
    """The tensors of the arguments on the GPU."""
    return tuple(v.cuda() if ON_GPU and isinstance(v, torch.Tensor) else v for v in values)


def agree(fn, *makes, **more):
    fn = fn.cuda() if ON_GPU and isinstance(fn, torch.nn.Module) else fn
    agreement.agree(fn, *((lambda make=make: place(make())) for make in makes), **more)


# ---- on a GPU and on the emulated one ----


def pointwise():
    agree(lambda x, y: (x * y + 1).tanh().sum(0), lambda: (torch.randn(5, 4), torch.randn(4)))


def strides():
    agree(lambda x: (x.t() + 1, x[1:], x.flip(0).cumsum(1)), lambda: (torch.randn(5, 4),))


def sizes():
    agree(lambda x: F.softmax(x, -1), lambda: (torch.randn(5, 4),), lambda: (torch.randn(7, 6),), dynamic=True)


def writes():
    def step(x, i, y):
        x.index_add_(0, i, y)
        return x.sum()

    agree(step, lambda: (torch.zeros(5, 3), torch.tensor([1, 1, 4]), torch.ones(3, 3)))


def several_results():
    agree(lambda x: torch.sort(x, dim=1), lambda: (torch.randn(5, 40),))
    agree(lambda x: torch.topk(x.t(), 2), lambda: (torch.randn(5, 40),))


def draws():
    agree(lambda x: F.dropout(x, 0.5) + torch.randn_like(x), lambda: (torch.randn(5, 40),))


def large_product():
    agree(lambda x, w, b: F.relu(F.linear(x.t(), w, b)) + 1, lambda: (torch.randn(96, 70), torch.randn(80, 96), torch.randn(80)))


def results_of_a_library():
    """Between steps: tensors that ATen makes take the place of the program's memory, and are read after it is reused."""

    def chain(x, w):
        for _ in range(3):
            x = torch.relu(F.conv2d(x, w, padding=1)) + x
        return x

    with torch.backends.cudnn.flags(allow_tf32=False):
        agree(chain, lambda: (torch.randn(1, 24, 16, 16), torch.randn(24, 24, 3, 3) / 15))


def wrong_index():
    fast = agreement.compiled(lambda x, i: x[i] * 2)
    try:
        fast(*place((torch.randn(5, 3), torch.tensor([1, 9]))))
        if ON_GPU:
            torch.cuda.synchronize()
    except Exception as error:
        assert "assert" in str(error) or "nonzero value" in str(error), error
    else:
        raise AssertionError("an index out of range is no error")


def optimizer():
    """Numbers of the host: the count of steps is a tensor without axes there, and is written."""
    torch.manual_seed(0)
    models = [torch.nn.Linear(6, 5, device="cuda" if ON_GPU else "cpu") for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    kinds = [torch.optim.AdamW(m.parameters(), lr=1e-2) for m in models]
    steps = [kinds[0].step, agreement.compiled(kinds[1].step)]
    for k in range(3):
        for model, step in zip(models, steps):
            for p in model.parameters():
                p.grad = torch.full_like(p, 0.1 * (k + 1))
            step()
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        torch.testing.assert_close(a, b)
        states = [kind.state[p] for kind, p in ((kinds[0], a), (kinds[1], b))]
        assert states[0]["step"] == states[1]["step"] == 3


def models():
    for name, (cls, make) in MODELS.items():
        torch.manual_seed(0)
        agree(cls(), make, backward=True, tolerance=1e-4)
        print("model", name, flush=True)


def cache():
    torch.manual_seed(0)
    model = Decoder().cuda() if ON_GPU else Decoder()
    caches = [place(torch.zeros(1, 2, 5, 8) for _ in range(2)) for _ in range(2)]
    fast = agreement.compiled(model.step, fullgraph=True)
    with torch.no_grad():
        wanted, got = (f(*place((torch.tensor([[3]]), torch.tensor([1]))), *c) for f, c in zip((model.step, fast), caches))
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(caches[1], caches[0], rtol=1e-4, atol=1e-5)


# ---- on the GPU ----


def narrow_floats():
    for dtype in torch.bfloat16, torch.float16:
        agree(lambda x, y: (x * y + x).exp().softmax(-1), lambda dtype=dtype: (torch.randn(64, 50).to(dtype), torch.randn(50).to(dtype)))
        agree(lambda x, w: F.gelu(x @ w).sum(0), lambda dtype=dtype: (torch.randn(64, 128).to(dtype), torch.randn(128, 96).to(dtype)))


def autocast():
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8))

    def fn(x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return model(x)

    model.cuda()
    agree(fn, lambda: (torch.randn(16, 64),), tolerance=2e-2)


def ints():
    make = lambda: (torch.randint(-9, 9, (50,)), torch.randint(1, 9, (50,)))  # noqa: E731
    agree(lambda a, b: (a // b, a % b, torch.fmod(a, b), torch.div(a, b, rounding_mode="trunc"), a / b, a << 1), make)


def complex_numbers():
    agree(lambda x: (x * x.conj() + 1, x.abs(), torch.exp(x)), lambda: (torch.randn(20, dtype=torch.complex64),))


def scatters():
    def fn(x, i, v):
        a = torch.zeros_like(x).scatter_add(0, i, v)
        b = x.index_put((i[:, 0],), v[:, 0].unsqueeze(1).expand(-1, x.shape[1]), accumulate=True)
        return a, b, x.scatter_reduce(0, i, v, "amax")

    agree(fn, lambda: (torch.randn(7, 5), torch.randint(0, 7, (9, 5)), torch.randn(9, 5)))


def masks():
    agree(lambda x: torch.where(x > 0, x, 0.5).masked_fill(x < -1, 2.0), lambda: (torch.randn(40),))


def numbers_of_the_host():
    agree(lambda x: x * torch.tensor(2.5) + torch.full((), 3.0, device="cpu"), lambda: (torch.randn(4),))
    fast = agreement.compiled(lambda x, n: x * n + n.sqrt())
    x = torch.randn(5, device="cuda")
    for n in torch.tensor(2.0), torch.tensor(9.0):
        torch.testing.assert_close(fast(x, n), x * n + n.sqrt())


def other_devices():
    """Eager's own error, and eager's own copies."""
    with contextlib.suppress(RuntimeError, TypeError):
        agreement.compiled(lambda x, y: x + y, strict=False)(torch.ones(3), torch.ones(3, device="cuda"))
        raise AssertionError("tensors of two devices were added")
    fast = agreement.compiled(lambda x: (x + 1).cpu() + 1, strict=False)
    assert fast(torch.ones(3, device="cuda")).tolist() == [3.0] * 3


def streams():
    """Work is on the current stream, and a stream that waits for it sees it."""
    fast = agreement.compiled(lambda x: (x @ x).tanh() + 1)
    x = torch.randn(512, 512, device="cuda")
    wanted = fast(x)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        got = fast(x)
        event = side.record_event()
        assert not event.query()
    torch.cuda.current_stream().wait_stream(side)
    got.record_stream(torch.cuda.current_stream())
    torch.testing.assert_close(got, wanted)


def is_captured():
    """A whole call is recorded by torch's CUDA graphs: nothing in it waits for the device."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.LayerNorm(96), torch.nn.Linear(96, 300)).cuda()
    fast, x = agreement.compiled(lambda x: model(x).softmax(-1)), torch.randn(200, 64, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                wanted = fast(x)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            got = fast(x)
        got.zero_()
        graph.replay()
        torch.testing.assert_close(got, wanted)


def memory():
    """Results and temporary memory are from torch's allocator, and are free after the call."""
    fast = agreement.compiled(lambda x: (x.sum(0) * x).sort(0)[0] + 1)
    x = torch.randn(1024, 1024, device="cuda")
    y = fast(x)
    del y
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    y = fast(x)
    assert torch.cuda.memory_allocated() - before == y.nbytes and torch.cuda.max_memory_allocated() - before >= 2 * y.nbytes
    del y
    assert torch.cuda.memory_allocated() == before


def channels_last():
    cls, make = MODELS["mobilenet"]
    with torch.backends.cudnn.flags(allow_tf32=False):
        agree(cls(), make, backward=True, tolerance=1e-4)


def training():
    """20 steps of AdamW, the step compiled, too."""
    torch.manual_seed(0)
    first = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.GELU(), torch.nn.Linear(24, 4)).cuda()
    other = copy.deepcopy(first)
    x, losses = torch.randn(64, 12, device="cuda"), []
    for model, wrap in (first, lambda f: f), (other, agreement.compiled):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        forward = wrap(lambda x, model=model: model(x).square().mean())
        step = torch.compile(optimizer.step, backend=agreement.cinductor.torch.backend) if model is other else optimizer.step
        losses.append([])
        for _ in range(20):
            optimizer.zero_grad()
            loss = forward(x)
            loss.backward()
            step()
            losses[-1].append(loss.item())
    torch.testing.assert_close(torch.tensor(losses[1]), torch.tensor(losses[0]), rtol=1e-4, atol=1e-6)


def fused_draws():
    """They follow from the seed, and have the moments of their distributions."""
    options = {"strict": True, "fused_random": True}
    fast = torch.compile(lambda x: (F.dropout(x, 0.5), torch.randn_like(x)), backend=agreement.cinductor.torch.backend, options=options)
    torch.manual_seed(3)
    first, again = fast(torch.ones(50, 400, device="cuda")), fast(torch.ones(50, 400, device="cuda"))
    torch.manual_seed(3)
    assert all(torch.equal(a, b) and not torch.equal(a, c) for a, b, c in zip(first, fast(torch.ones(50, 400, device="cuda")), again))
    assert set(first[0].unique().tolist()) == {0.0, 2.0} and abs(first[0].mean() - 1) < 0.05 and abs(first[1].std() - 1) < 0.05


def triton_kernels():
    """An op whose implementation is a kernel of Triton."""
    try:
        import triton_op
    except ImportError:
        print("triton is not installed")
        return
    agree(lambda x: triton_op.add_one(x * 2).sin(), lambda: (torch.randn(300),))


EMULATED = (pointwise, strides, sizes, writes, several_results, draws, large_product, results_of_a_library)
REAL = (
    narrow_floats, autocast, ints, complex_numbers, scatters, masks, numbers_of_the_host, other_devices, streams, is_captured, memory,
    channels_last, training, optimizer, cache, fused_draws, triton_kernels,
)  # fmt: skip


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1]:
        emulate(sys.argv[1])
    for name in sys.argv[2:]:
        globals()[name]()
        print("ok", name, flush=True)
