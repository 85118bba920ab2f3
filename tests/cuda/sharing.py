"""Shares one GPU array between two processes. This process owns the array; prints a line for each thing that holds."""

import gc
import subprocess
import sys

import numpy as np

import cinductor

OTHER = """
import sys
import cinductor
for line in sys.stdin:
    word, _, data = line.strip().partition(" ")
    try:
        if word == "open":
            array = cinductor.from_ipc_handle(bytes.fromhex(data))
            print(array.device, array.numpy().ravel().tolist(), flush=True)
        elif word == "write":
            array += float(data)
            cinductor.synchronize(array.device)
            print("written", flush=True)
        else:
            del array
            print(cinductor.memory_stats()["blocks"], flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""


def say(is_right, *what):
    print("ok" if is_right else "wrong", *what)


def main():
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:

        def ask(word, data=""):
            child.stdin.write(f"{word} {data}\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        x = np.arange(12.0).reshape(3, 4)
        shared = cinductor.to_device(x, shared=True)
        for part in (np.s_[:], np.s_[1:, ::-2], np.s_[2, 3]):
            said = ask("open", shared[part].ipc_handle().hex())
            say(said == f"cuda {x[part].ravel().tolist()}", "opened", said)
        say(ask("write", "5") == "written", "written there")
        want = x.copy()
        want[2, 3] += 5
        say(np.array_equal(shared.numpy(), want), "read here")
        say(ask("drop") == "0", "closed there")
        for call, error in (
            (lambda: cinductor.from_ipc_handle(shared.ipc_handle()), ValueError),
            (lambda: cinductor.to_device(x).ipc_handle(), ValueError),
        ):
            try:
                call()
                say(False, "no error")
            except error as said:
                say(True, said)
        handle = shared.ipc_handle().hex()
        shared = None
        gc.collect()
        said = ask("open", handle)
        say(said.startswith("DeviceError the memory of the handle cannot be opened on cuda"), said)
        say(cinductor.memory_stats()["blocks"] == 0, "nothing left")
        child.stdin.close()


main()
