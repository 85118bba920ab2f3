"""Runs graphs of torch on the emulated card: emulated_card.py LIBRARY NAME..., with the fake driver of tests/cuda in the environment.

torch's tensors stay on the host. The emitter and the core take them for tensors of the first CUDA device.
"""

import ctypes
import sys

import agreement

# isort: split
import torch
import torch.nn.functional as F
from models import MODELS, Decoder

from cinductor import _core
from cinductor.torch import layout, library, output

CARD = torch.device("cuda", 0)


def emulate(path):
    """Make cinductor take tensors of the host for tensors of a card."""
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
    numbers = ctypes.CDLL(None).getenv(b"EMULATED_NUMBERS_ON_HOST")
    layout.device_of = lambda t: layout.HOST if numbers and t.dim() == 0 else CARD


def pointwise():
    agreement.agree(lambda x, y: (x * y + 1).tanh().sum(0), lambda: (torch.randn(5, 4), torch.randn(4)))


def strides():
    agreement.agree(lambda x: (x.t() + 1, x[1:], x.flip(0).cumsum(1)), lambda: (torch.randn(5, 4),))


def sizes():
    agreement.agree(lambda x: F.softmax(x, -1), lambda: (torch.randn(5, 4),), lambda: (torch.randn(7, 6),), dynamic=True)


def writes():
    def step(x, i, y):
        x.index_add_(0, i, y)
        return x.sum()

    agreement.agree(step, lambda: (torch.zeros(5, 3), torch.tensor([1, 1, 4]), torch.ones(3, 3)))


def several_results():
    agreement.agree(lambda x: torch.sort(x, dim=1), lambda: (torch.randn(5, 40),))
    agreement.agree(lambda x: torch.topk(x.t(), 2), lambda: (torch.randn(5, 40),))


def draws():
    agreement.agree(lambda x: F.dropout(x, 0.5) + torch.randn_like(x), lambda: (torch.randn(5, 40),))


def large_product():
    agreement.agree(lambda x, w, b: F.relu(F.linear(x.t(), w, b)) + 1, lambda: (torch.randn(96, 70), torch.randn(80, 96), torch.randn(80)))


def wrong_index():
    fast = agreement.compiled(lambda x, i: x[i] * 2)
    try:
        fast(torch.randn(5, 3), torch.tensor([1, 9]))
    except RuntimeError as error:
        assert "Expected Tensor with single nonzero value" in str(error) or "assert" in str(error).lower(), error
    else:
        raise AssertionError("an index out of range is no error")


def optimizer():
    """Numbers of the host: the count of steps is a tensor without axes there, and is written."""
    torch.manual_seed(0)
    models = [torch.nn.Linear(6, 5) for _ in range(2)]
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
        agreement.agree(cls(), make, backward=True, tolerance=1e-4)
        print("model", name, flush=True)


def cache():
    torch.manual_seed(0)
    model = Decoder()
    caches = [[torch.zeros(1, 2, 5, 8) for _ in range(2)] for _ in range(2)]
    fast = agreement.compiled(model.step, fullgraph=True)
    with torch.no_grad():
        wanted, got = (f(torch.tensor([[3]]), torch.tensor([1]), *c) for f, c in zip((model.step, fast), caches))
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(caches[1], caches[0], rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    emulate(sys.argv[1])
    for name in sys.argv[2:]:
        globals()[name]()
        print("ok", name, flush=True)
