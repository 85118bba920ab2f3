"""Translates a CUDA C++ source to C++ for the host and builds a library that the emulator runs: host.py SOURCE
LIBRARY.

Only the constructs that cinductor prints are supported. Threads, blocks, barriers and shuffles call the emulator;
the few instructions that sources name are replaced by functions of the host.
"""

import os
import re
import sys

# Functions of the C library that sources call, by number of arguments. They are declared here because reading the
# headers would take as long as compiling the rest.
FUNCTIONS = {
    1: """fabs floor ceil trunc rint sqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
    asinh acosh atanh cbrt erf erfc""",
    2: "fmod pow atan2 hypot copysign nextafter",
    3: "fma",
}
DECLARED = "".join(
    f'extern "C" {kind} {name}{end}({", ".join([kind] * count)});\n'
    for count, names in FUNCTIONS.items()
    for name in names.split()
    for kind, end in (("double", ""), ("float", "f"))
)

RUNTIME = """
extern "C" { double ldexp(double, int); float ldexpf(float, int); void *memcpy(void *, const void *, __SIZE_TYPE__); }
struct EmulatorDim { int x, y, z; };
struct EmulatorRuntime {
    EmulatorDim thread, block;
    unsigned char *shared;
    void (*wait)(int for_warp);
    void (*exchange)(void *value, int size, int lane);
    void (*collect)(const void *value, int size, void *all);
};
extern "C" { EmulatorRuntime *emulator_runtime; int emulator_waits = WAITS; }
#define threadIdx (emulator_runtime->thread)
#define blockIdx (emulator_runtime->block)
#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __syncthreads() emulator_runtime->wait(0)
#define __syncwarp() emulator_runtime->wait(1)
#define rsqrtf(value) (1 / sqrtf(value))
#define __int_as_float(bits) __builtin_bit_cast(float, (int)(bits))
#define __float_as_uint(value) __builtin_bit_cast(unsigned, (float)(value))
#define __longlong_as_double(bits) __builtin_bit_cast(double, (long long)(bits))
template <class T> static T atomicAdd(T *at, T value) { T had = *at; *at += value; return had; }
template <class T> static void atomicMax(T *at, T value) { *at = *at > value ? *at : value; }
template <class T> static void atomicMin(T *at, T value) { *at = *at < value ? *at : value; }
template <class T> static void atomicAnd(T *at, T value) { *at &= value; }
template <class T> static void atomicOr(T *at, T value) { *at |= value; }
template <class T> static void atomicXor(T *at, T value) { *at ^= value; }
static int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
template <class T> static T __shfl_sync(unsigned, T value, int from, int width = 32)
{
    emulator_runtime->exchange(&value, sizeof value, threadIdx.x % 32 / width * width + from);
    return value;
}
static unsigned __match_any_sync(unsigned, unsigned value)
{
    unsigned all[32], peers = 0;
    emulator_runtime->collect(&value, sizeof value, all);
    for (int lane = 0; lane < 32; lane++)
        peers |= (unsigned)(all[lane] == value) << lane;
    return peers;
}
static unsigned __ballot_sync(unsigned, unsigned value)
{
    value = value != 0;
    return __match_any_sync(0, value) ^ (value ? 0 : ~0u);
}
template <class T> static T __shfl_xor_sync(unsigned, T value, int mask)
{
    emulator_runtime->exchange(&value, sizeof value, threadIdx.x % 32 ^ mask);
    return value;
}
"""

INSTRUCTIONS = {
    r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\(a\) : "h"\(h\)\);': "a = (float)__builtin_bit_cast(_Float16, h);",
    r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\(r\) : "h"\(h\)\);': "r = (float)__builtin_bit_cast(_Float16, h);",
    r'asm\("rcp\.approx\.ftz\.f32 %0, %1;" : "=f"\(inverse\) : "f"\(b\)\);': "inverse = 1 / b;",
    r'asm\("cvt\.rn\.f16\.f(32|64) %0, %1;" : "=h"\(h\) : "[fd]"\(a\)\);': "h = __builtin_bit_cast(uint16_t, (_Float16)a);",
    r"extern __shared__ __align__\(16\) unsigned char rows\[\];": "unsigned char *const rows = emulator_runtime->shared;",
}


def start_of(name, parameters):
    """A function that calls the kernel with pointers to the values of its parameters, like cuLaunchKernel."""
    types = [
        re.sub(r"\w+$", "", one.strip()).replace("__restrict__", "")
        for one in parameters.split(",")
        if one.strip()
    ]
    sizes = ", ".join([str(len(types)), *(f"sizeof({kind})" for kind in types)])
    values = ", ".join(f"*({kind}*)p[{k}]" for k, kind in enumerate(types))
    known = f'extern "C" {{ extern const int sizes_{name}[]; const int sizes_{name}[] = {{ {sizes} }}; }}\n'
    return f'{known}extern "C" void start_{name}(void **p) {{ {name}({values}); }}\n'


def broken_promises(text):
    r"""Pointers that a kernel with barriers both loads and stores, although they are `restrict`.

    NVRTC relies on `restrict` and may reuse a value loaded before a barrier. Compilers for the host do not, so the
    emulator would not show this error.
    """
    for name, parameters, body in re.findall(
        r"^(k\w+)\(([^)]*)\)\n\{(.*?)^\}", text, re.MULTILINE | re.DOTALL
    ):
        if "__sync" not in body and "__shfl" not in body:
            continue
        for pointer in re.findall(r"(?:^|, )(?!const)\w+ \*__restrict__ (\w+)", parameters):
            rest = re.sub(rf"\b{pointer}\[[^;]*?\] = ", "", body)
            if re.search(rf"\b{pointer}\[", rest):
                yield f"{name}: {pointer} is restrict, loaded and stored"


def main(source, library):
    with open(source) as file:
        text = file.read()
    if broken := list(broken_promises(text)):
        print("\n".join(broken))
        return 1
    for pattern, replacement in INSTRUCTIONS.items():
        text = re.sub(pattern, replacement, text)
    waits = any(name in text for name in ("__sync", "__shfl", "__match", "__ballot"))
    runtime = RUNTIME.replace("WAITS", str(int(waits)))
    for name, parameters in re.findall(r"^(k\w+|cinductor_kernel)\(([^)]*)\)$", text, re.MULTILINE):
        text += start_of(name, parameters)
    flags = "-std=gnu++17 -O1 -w -shared -fPIC -nostdlib -ffp-contract=off -fwrapv -fno-strict-aliasing -fno-math-errno"
    compiler = os.environ.get("CXX", "g++").split()
    with open(f"{source}.cpp", "w") as file:
        file.write(DECLARED + runtime + text)
    command = [*compiler, *flags.split(), f"{source}.cpp", "-o", library, "-lm", "-lgcc"]
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
