"""Passes GPU arrays of CuPy and torch to cinductor and back; prints one line for each check."""

import sys

import numpy as np

import cinductor


def say(is_right, *what):
    print("ok" if is_right else "wrong", *what)


def check(name, make, to_host, delayed):
    r"""make: converts a NumPy array to an array of the package.

    delayed: returns a cinductor array whose kernel still runs on its own stream, and the expected values.
    """
    x = np.arange(24.0).reshape(4, 6)
    theirs = make(x)
    ours = cinductor.from_dlpack(theirs)
    say(np.array_equal(ours.numpy(), x), name, "taken")
    ours += 1
    cinductor.synchronize()
    say(np.array_equal(to_host(theirs), x + 1), name, "one memory")
    f = cinductor.compile(lambda a: a * 2 + a.sum(axis=0))
    result = f(theirs)
    say(type(result) is type(theirs), name, "results of its kind")
    say(np.allclose(to_host(result), (x + 1) * 2 + (x + 1).sum(axis=0)), name, "values")
    for _ in range(20):
        late, want = delayed()
        say(np.array_equal(late.numpy(), want), name, "a delayed producer")


def main(name):
    if name == "cupy":
        import cupy

        def delayed():
            a = cupy.zeros(1 << 20)
            cupy.cuda.Device().synchronize()  # other streams do not wait for that one
            with cupy.cuda.Stream(non_blocking=True):
                for _ in range(50):
                    a += 1
                taken = cinductor.from_dlpack(a)  # its stream is the current one
            return taken, np.full(1 << 20, 50.0)

        check(name, cupy.asarray, cupy.asnumpy, delayed)
        ours = cinductor.to_device(np.arange(5.0))
        say(np.array_equal(cupy.asnumpy(cupy.from_dlpack(ours)), np.arange(5.0)), name, "given")
        say(np.array_equal(cupy.asnumpy(cupy.asarray(ours)), np.arange(5.0)), name, "given by the interface")
    else:
        import torch

        def delayed():
            a = torch.zeros(1 << 20, device="cuda", dtype=torch.float64)
            torch.cuda.synchronize()
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(50):
                    a += 1
                taken = cinductor.from_dlpack(a)
            return taken, np.full(1 << 20, 50.0)

        check(name, lambda x: torch.from_numpy(x).cuda(), lambda t: t.cpu().numpy(), delayed)
        ours = cinductor.to_device(np.arange(5.0))
        say(np.array_equal(torch.from_dlpack(ours).cpu().numpy(), np.arange(5.0)), name, "given")


main(sys.argv[1])
