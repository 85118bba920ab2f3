"""Compiled functions and modules as users train, copy, store and call them, compared with eager:

    python workflows.py [NAME ...]

test_training.py runs some of them.
"""

import copy
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import agreement
import pytest

# isort: split
import torch
import torch.nn.functional as F
from torch import nn

CASES = {}
R = torch.randn
close = torch.testing.assert_close


def case(fn):
    CASES[fn.__name__] = fn
    return fn


def compiled(fn, **more):
    return agreement.compiled(fn, **more)


def net():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 12, bias=False), nn.BatchNorm1d(12), nn.GELU(), nn.Dropout(0.3), nn.Linear(12, 3))


def twins(make=net):
    """A model, its copy, and the copy compiled."""
    model = make()
    other = copy.deepcopy(model)
    return model, other, compiled(other)


def same_state(a, b):
    for (key, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        close(y, x, rtol=2e-4, atol=2e-5, msg=lambda text, key=key: f"{key}: {text}")


def steps(step, model, optimizer, count=5, after=None):
    torch.manual_seed(2)
    for _ in range(count):
        optimizer.zero_grad()
        step(R(8, 6)).square().mean().backward()
        optimizer.step()
        if after:
            after()
    return model


# ---- training loops ----


@case
def optimisers_are_compiled():
    for make in (lambda p: torch.optim.AdamW(p, lr=0.02, amsgrad=True), lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.5), lambda p: torch.optim.Adagrad(p, lr=0.02), lambda p: torch.optim.NAdam(p, lr=0.01)):
        model, other, fast = twins()
        a, b = make(model.parameters()), make(other.parameters())
        b.step = torch.compile(b.step, backend=agreement.cinductor.torch.backend)
        same_state(steps(model, model, a), steps(fast, other, b))


@case
def schedulers_change_the_rate():
    model, other, fast = twins()
    pair = []
    for m, step in ((model, model), (other, fast)):
        optimizer = torch.optim.SGD(m.parameters(), lr=torch.tensor(0.1), momentum=0.9, nesterov=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)
        pair.append(steps(step, m, optimizer, after=schedule.step))
    same_state(*pair)


@case
def the_whole_step_is_compiled():
    model, other = net().eval(), net().eval()
    a, b = (torch.optim.SGD(m.parameters(), lr=0.05) for m in (model, other))

    def step(m, optimizer, x):
        loss = m(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    fast = compiled(step, strict=False)
    for _ in range(3):
        x = R(8, 6)
        close(fast(other, b, x), step(model, a, x))
    same_state(model, other)


@case
def gradients_are_accumulated():
    model, other, fast = twins()
    for step in (model, fast):
        torch.manual_seed(4)
        for _ in range(4):
            (step(R(5, 6)).exp().mean() / 4).backward()
    for p, q in zip(model.parameters(), other.parameters()):
        close(q.grad, p.grad, rtol=1e-4, atol=1e-6)


@case
def train_and_eval_alternate():
    model, other, fast = twins()
    torch.manual_seed(0)
    for k in range(4):
        model.train(k % 2 == 0), other.train(k % 2 == 0)
        x, state = R(7, 6), torch.get_rng_state()
        wanted = model(x)
        torch.set_rng_state(state)
        close(fast(x), wanted, rtol=1e-5, atol=1e-5)
    same_state(model, other)


@case
def parameters_are_frozen_and_replaced():
    model, other, fast = twins()
    for m, step in ((model, model), (other, fast)):
        m.eval()
        x = torch.ones(3, 6)
        step(x).sum().backward()
        m[0].requires_grad_(False)
        m.zero_grad()
        step(x).sum().backward()
        assert m[0].weight.grad is None
        m[4].weight = nn.Parameter(torch.full((3, 12), 0.5))
        m[0].weight.data.mul_(2)
        m.result = step(x).detach()
    close(other.result, model.result, rtol=1e-5, atol=1e-5)


@case
def gradients_are_clipped_and_scaled():
    model, other, fast = twins()
    for m, step in ((model, model), (other, fast)):
        torch.manual_seed(1)
        scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
        optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            scaler.scale(step(R(6, 6)).square().sum()).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_value_(m.parameters(), 0.3)
            scaler.step(optimizer)
            scaler.update()
    same_state(model, other)


@case
def swa_keeps_means():
    model, other, fast = twins()
    pair = []
    for m, step in ((model, model), (other, fast)):
        mean = torch.optim.swa_utils.AveragedModel(m)
        steps(step, m, torch.optim.SGD(m.parameters(), lr=0.1), after=lambda m=m, mean=mean: mean.update_parameters(m))
        pair.append(mean)
    same_state(*pair)


@case
def gradients_of_gradients_are_torchs_refusal():
    fast = compiled(lambda x: (x.sin() * x).sum())
    x = R(4, requires_grad=True)
    (g,) = torch.autograd.grad(fast(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        g.sum().backward()


@case
def anomalies_are_found():
    fast = compiled(lambda x: (x - x).sqrt().sum())
    x = R(4, requires_grad=True)
    fast(x).backward()
    assert x.grad.isnan().all()


# ---- modes of autograd ----


@case
def no_grad_and_inference_mode():
    model, other, fast = twins()
    model.eval(), other.eval()
    x = R(4, 6)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            wanted, got = model(x), fast(x)
        close(got, wanted)
        assert got.requires_grad == wanted.requires_grad and got.is_inference() == wanted.is_inference()


@case
def inference_tensors_are_arguments():
    fast = compiled(lambda x, y: (x @ y).relu() + x)
    with torch.inference_mode():
        x = R(3, 3)
        close(fast(x, x), (x @ x).relu() + x)
    close(fast(x, x), (x @ x).relu() + x)


@case
def the_mode_of_gradients_changes_inside():
    def fn(x):
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad():
            z = x.sin()
        return y, z, y + z, torch.is_grad_enabled()

    agreement.agree(fn, lambda: (R(3, requires_grad=True),), backward=True)


# ---- copies, files, processes ----


@case
def compiled_modules_are_copied():
    model, other, fast = twins()
    model.eval(), other.eval()
    x = R(4, 6)
    close(fast(x), model(x))
    again = copy.deepcopy(fast)
    with torch.no_grad():
        other[0].weight.zero_()
    close(again(x), model(x), rtol=1e-5, atol=1e-5)
    assert (again(x) - fast(x)).abs().max() > 1e-3


@case
def states_are_saved_and_loaded():
    model, other, fast = twins()
    model.eval(), other.eval()
    fast(R(2, 6))
    file = io.BytesIO()
    torch.save(fast.state_dict(), file)
    file.seek(0)
    state = {key.removeprefix("_orig_mod."): value for key, value in torch.load(file).items()}
    fresh = nn.Sequential(*net()).eval()
    nn.init.zeros_(fresh[0].weight)
    quick = compiled(fresh)
    quick(R(2, 6))
    fresh.load_state_dict(state)
    x = R(3, 6)
    close(quick(x), model(x))


class Inside(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net().eval()
        self.net.compile(backend=agreement.cinductor.torch.backend)

    def forward(self, x):
        return self.net(x) * 2


@case
def modules_compiled_in_place_are_pickled():
    model = Inside()
    x = R(3, 6)
    wanted = model(x)
    close(pickle.loads(pickle.dumps(model))(x), wanted)
    close(copy.deepcopy(model)(x), wanted)


PROGRAM = """
import torch, cinductor.torch, sys
torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
f = torch.compile(m, backend=cinductor.torch.backend)
y = f(torch.ones(3, 4)); y.square().sum().backward()
print(y.sum().item(), m[0].weight.grad.sum().item(), torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"])
"""


@case
def a_second_process_finds_the_caches():
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "CINDUCTOR_CACHE_DIR": folder + "/c"}
        first, second = (subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True).stdout.split() for _ in range(2))
    assert first[:2] == second[:2] and (first[2], second[2]) == ("0", "1"), (first, second)


@case
def a_child_is_forked():
    if torch.cuda.is_available():
        return  # Dynamo asks for the state of CUDA's generator, which a forked child does not have
    model, other, fast = twins()
    model.eval(), other.eval()
    x = R(4, 6)
    wanted = fast(x).detach()

    def child(pipe):
        with torch.no_grad():
            close(fast(x), wanted)
            fresh = compiled(lambda x: (x * 3).cos())(x)
            pipe.send(bool(torch.allclose(fresh, (x * 3).cos())))

    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=child, args=(there,))
    process.start()
    assert here.poll(120) and here.recv()
    process.join()
    assert process.exitcode == 0


@case
def threads_call_and_compile():
    fast = compiled(lambda x: (x.sin() @ x.t()).softmax(-1).sum(0), dynamic=False)
    errors = []

    def work(n):
        for k in range(3):
            x = torch.full((n, 4), 0.1 * k + n)
            try:
                close(fast(x), (x.sin() @ x.t()).softmax(-1).sum(0), rtol=1e-5, atol=1e-5)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in (2, 3, 4, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors


# ---- sizes ----


@case
def marked_axes_are_dynamic():
    fast = compiled(lambda x: F.layer_norm(x, (4,)).cumsum(0) / x.shape[0])
    counts = torch._dynamo.utils.counters["stats"]
    for n in (5, 9, 3):
        x = R(n, 4)
        torch._dynamo.mark_dynamic(x, 0)
        close(fast(x), F.layer_norm(x, (4,)).cumsum(0) / n, rtol=1e-5, atol=1e-5)
        if n == 5:
            before = counts["unique_graphs"]
    assert counts["unique_graphs"] == before


@case
def sizes_become_dynamic_by_themselves():
    fast = compiled(lambda x, y: torch.cat([x, y]).view(-1, 2).amax(1))
    for n, m in ((4, 6), (8, 6), (2, 2), (0, 4), (1, 1)):
        x, y = R(n), R(m)
        close(fast(x, y), torch.cat([x, y]).view(-1, 2).amax(1))


@case
def sequences_are_generated():
    """A loop of decoding whose cache grows."""
    table, w = R(11, 8), R(8, 11)

    def step(token, cache):
        cache = torch.cat([cache, table[token][:, None]], 1)
        weights = (cache @ cache[:, -1:].transpose(1, 2)).softmax(1)
        return ((weights * cache).sum(1) @ w).argmax(-1), cache

    fast = compiled(step)
    a = b = torch.tensor([1, 2])
    one = two = torch.zeros(2, 1, 8)
    for _ in range(6):
        a, one = step(a, one)
        b, two = fast(b, two)
        close(two, one)
        assert torch.equal(a, b)


# ---- nesting, transforms, errors ----


@case
def compiled_functions_call_compiled_ones():
    inner = torch.compile(lambda x: x.sin() + 1, backend=agreement.cinductor.torch.backend)
    agreement.agree(lambda x: inner(x) * inner(x + 1), lambda: (R(5, requires_grad=True),), backward=True)


@case
def transforms_of_compiled_functions():
    fast = compiled(lambda x: (x.sin() * x).sum(), strict=False)
    x = R(4)
    close(torch.func.grad(fast)(x), torch.func.grad(lambda x: (x.sin() * x).sum())(x))
    close(torch.vmap(fast)(R(3, 4).fill_(0.5)), torch.full((3,), 4 * 0.5 * torch.tensor(0.5).sin().item()))
    again = compiled(lambda x: torch.func.hessian(lambda v: (v**3).sum())(x) + torch.func.jacfwd(torch.sin)(x))
    close(again(x), torch.diag(6 * x) + torch.diag(x.cos()))
    close(compiled(lambda x: torch.vmap(torch.func.grad(lambda v: v.exp().prod()))(x))(R(3, 2).fill_(0.1)), torch.full((3, 2), 0.2).exp())


@case
def errors_of_data_are_eagers():
    table = R(5, 3)
    fast = compiled(lambda i, x: table[i] * x)
    for i in ([0, 4], [0, 5], [-6, 1], [1, 2]):
        i, x = torch.tensor(i), R(2, 3)
        try:
            wanted = table[i] * x
        except IndexError as error:
            with pytest.raises(IndexError) as found:
                fast(i, x)
            assert str(found.value) == str(error)
        else:
            close(fast(i, x), wanted)
    with pytest.raises(IndexError, match="Target 7 is out of bounds"):
        compiled(lambda x: F.nll_loss(x, torch.tensor([7, 0])))(R(2, 3))


@case
def sparse_tensors_are_eagers():
    """Dynamo captures no graph of them. test_refused_inputs.py has those that it captures and the backend refuses."""
    x = torch.eye(3).to_sparse()
    close(compiled(lambda x: torch.sparse.mm(x, torch.ones(3, 2)) * 2)(x), torch.full((3, 2), 2.0))


@case
def bools_and_ints():
    def fn(a, b, n):
        c = (a & ~b) | (a ^ b)
        k = torch.where(c, n // 3, n % -4)
        return c.any(0), c.all(), k << 2, k >> 1, ~k, k.bitwise_xor(n), c.sum(), (n > 2).logical_and(a), n.to(torch.uint8) * 200, torch.bucketize(n, torch.arange(0, 9, 2)), c.float().mean(), n.remainder(3) == 0

    agreement.agree(fn, lambda: (R(3, 4) > 0, R(3, 4) > 0, torch.randint(-9, 9, (3, 4))))


@case
def results_are_written_later():
    """Writing a result must not change what later calls return."""
    weight = R(4)
    fast = compiled(lambda x: (x * weight, weight + 0, x.new_zeros(4), torch.arange(4.0)))
    for _ in range(3):
        made = fast(torch.ones(4))
        for a, b in zip(made, (weight, weight, torch.zeros(4), torch.arange(4.0))):
            close(a, b)
            a.fill_(7)


@case
def seeds_repeat_numbers():
    fast = compiled(lambda x: F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4))
    x = torch.ones(4)
    for generate in (fast, lambda x: F.dropout(x, 0.5) + torch.rand_like(x) + torch.randn(4)):
        found = []
        for _ in range(2):
            torch.manual_seed(11)
            found.append((generate(x), generate(x)))
        assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
    torch.manual_seed(11)
    close(fast(x), found[0][0])


@case
def default_dtypes_change():
    fast = compiled(lambda n: torch.ones(n.shape[0]) / 3 + n)
    n = torch.arange(3)
    try:
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            torch.set_default_dtype(dtype)
            close(fast(n), torch.ones(3) / 3 + n)
            assert fast(n).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


@case
def autocast_is_around_the_call():
    model, other, fast = twins()
    model.eval(), other.eval()
    x = R(4, 6)
    for enabled in (True, False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            wanted, got = model(x), fast(x)
        assert got.dtype == wanted.dtype
        close(got, wanted, rtol=2e-2, atol=2e-2)


@case
def modules_are_lazy_and_reparametrised():
    torch.manual_seed(0)
    model = nn.Sequential(nn.LazyLinear(4), nn.ReLU())
    model(R(2, 3))
    other = copy.deepcopy(model)
    fast = compiled(other)
    x = R(5, 3)
    close(fast(x), model(x))
    weights = {key: value * 2 for key, value in model.state_dict().items()}
    close(torch.func.functional_call(other, weights, (x,)), torch.func.functional_call(model, weights, (x,)))


@case
def arguments_are_keywords_and_containers():
    def fn(x, *rest, scale=1.0, **more):
        return {"sum": sum(rest, x) * scale, "more": [more["a"] @ more["b"][0], len(rest)], "shape": x.shape}

    x = R(3, 3)
    fast = compiled(fn)
    for scale in (1.0, 2.5):
        wanted, got = (f(x, x, x + 1, scale=scale, a=x, b=(x, None)) for f in (fn, fast))
        close(got["sum"], wanted["sum"])
        close(got["more"][0], wanted["more"][0])
        assert got["shape"] == wanted["shape"] and got["more"][1] == 2


def main(names):
    failed = 0
    warnings.simplefilter("ignore")
    for name in names or CASES:
        start, problem = time.time(), ""
        try:
            CASES[name]()
        except BaseException as error:
            problem, failed = f": {type(error).__name__}: {str(error)[:900]}", failed + 1
        print(f"{name} {time.time() - start:.1f} s{problem}", flush=True)
    print(f"{failed} of {len(names or CASES)} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
