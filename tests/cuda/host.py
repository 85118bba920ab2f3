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
#define __forceinline__
#define __noinline__
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
static int __clzll(unsigned long long bits) { return __builtin_clzll(bits); }
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

# Instructions for tiles. Copies arrive as late as a source allows, and a product by wgmma begins as late, so that a missing
# wait or a tile that is overwritten too early changes the result.
TILES = """
#define __cvta_generic_to_shared(p) ((unsigned long long)((const unsigned char *)(p) - emulator_runtime->shared))
struct EmulatorCopy { void *to; const void *from; int bytes, batch; };
struct EmulatorProduct { float *d; unsigned long long a, b; int columns, is_half, left, right, batch, adds, is_own; float own[2][16]; };
static EmulatorCopy emulator_copies[1024][256];
static EmulatorProduct emulator_products[1024][64];
static int emulator_ncopies[1024], emulator_nproducts[1024], emulator_batch[1024], emulator_group[1024];
static float emulator_widen(const void *p, int is_half)
{
    unsigned short h;
    memcpy(&h, p, 2);
    return is_half ? (float)__builtin_bit_cast(_Float16, h) : __builtin_bit_cast(float, (unsigned)h << 16);
}
static unsigned emulator_narrow(float a, int is_half)
{
    unsigned bits = __builtin_bit_cast(unsigned, a);
    if (is_half)
        return __builtin_bit_cast(unsigned short, (_Float16)a);
    return a != a ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static unsigned emulator_pair(float a, float b, int is_half) { return emulator_narrow(a, is_half) | emulator_narrow(b, is_half) << 16; }
static void emulator_copy(void *to, const void *from, int bytes)
{
    int t = threadIdx.x;
    emulator_copies[t][emulator_ncopies[t]++] = EmulatorCopy{to, from, bytes, emulator_batch[t]};
}
static void emulator_commit() { emulator_batch[threadIdx.x]++; }
static void emulator_arrive(int left)
{
    int t = threadIdx.x, count = 0;
    for (int k = 0; k < emulator_ncopies[t]; k++) {
        EmulatorCopy c = emulator_copies[t][k];
        if (c.batch >= emulator_batch[t] - left) {
            emulator_copies[t][count++] = c;
            continue;
        }
        __builtin_memset(c.to, 0, 16);
        memcpy(c.to, c.from, c.bytes);
    }
    emulator_ncopies[t] = count;
}
/* An element of a tile: of a line of 64, or across lines. */
static float emulator_element(unsigned long long tile, int side, int step, int is_across, int is_half)
{
    int along = is_across ? side : step, line = is_across ? step : side;
    unsigned long long start = (tile & 0x3fff) << 4, atom = (tile >> 16 & 0x3fff) << 4, eight = (tile >> 32 & 0x3fff) << 4;
    unsigned long long at = start + along / 64 * atom + line / 8 * eight + line % 8 * 128 + along % 64 * 2;
    return emulator_widen(emulator_runtime->shared + (at ^ (at >> 7 & 7) << 4), is_half);
}
static EmulatorProduct &emulator_add(float *d, unsigned long long b, int columns, int is_half, int adds, int right)
{
    int t = threadIdx.x;
    return emulator_products[t][emulator_nproducts[t]++] = EmulatorProduct{d, 0, b, columns, is_half, 0, right, emulator_group[t], adds, 0};
}
static void emulator_multiply(float *d, unsigned long long a, unsigned long long b, int columns, int is_half, int adds, int left, int right)
{
    EmulatorProduct &p = emulator_add(d, b, columns, is_half, adds, right);
    p.a = a;
    p.left = left;
}
static void emulator_multiply_own(float *d, const unsigned *a, unsigned long long b, int columns, int is_half, int adds, int right)
{
    unsigned all[32][4];
    int lane = threadIdx.x % 32;
    emulator_runtime->collect(a, 16, all);
    EmulatorProduct &p = emulator_add(d, b, columns, is_half, adds, right);
    p.is_own = 1;
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < 16; k++)
            p.own[h][k] = emulator_widen((char *)&all[lane / 4 * 4 + k % 8 / 2][h + 2 * (k / 8)] + k % 2 * 2, is_half);
}
static void emulator_end() { emulator_group[threadIdx.x]++; }
static void emulator_multiplied(int left)
{
    int t = threadIdx.x, count = 0, lane = t % 32, row = t % 128 / 32 * 16 + lane / 4;
    for (int k = 0; k < emulator_nproducts[t]; k++) {
        EmulatorProduct p = emulator_products[t][k];
        if (p.batch >= emulator_group[t] - left) {
            emulator_products[t][count++] = p;
            continue;
        }
        for (int n = 0; n < p.columns / 2; n++) {
            p.d[n] = p.adds ? p.d[n] : 0;
            for (int s = 0; s < 16; s++)
                p.d[n] += (p.is_own ? p.own[n / 2 % 2][s] : emulator_element(p.a, row + n / 2 % 2 * 8, s, p.left, p.is_half)) *
                          emulator_element(p.b, n / 4 * 8 + lane % 4 * 2 + n % 2, s, p.right, p.is_half);
        }
    }
    emulator_nproducts[t] = count;
}
static void emulator_fragments(unsigned *r, const void *p, int is_across)
{
    const unsigned char *rows[32];
    int lane = threadIdx.x % 32;
    emulator_runtime->collect(&p, sizeof p, rows);
    for (int m = 0; m < 4; m++)
        for (int h = 0; h < 2; h++) {
            int i = lane / 4, j = lane % 4 * 2 + h;
            memcpy((char *)&r[m] + 2 * h, rows[8 * m + (is_across ? j : i)] + 2 * (is_across ? i : j), 2);
        }
}
static void emulator_mma(float *d, const unsigned *a, const unsigned *b, int is_half)
{
    unsigned all[32][4], right[32][2];
    int lane = threadIdx.x % 32;
    emulator_runtime->collect(a, 16, all);
    emulator_runtime->collect(b, 8, right);
    for (int n = 0; n < 4; n++)
        for (int k = 0; k < 16; k++)
            d[n] += emulator_widen((char *)&all[lane / 4 * 4 + k % 8 / 2][n / 2 + 2 * (k / 8)] + k % 2 * 2, is_half) *
                    emulator_widen((char *)&right[(lane % 4 * 2 + n % 2) * 4 + k % 8 / 2][k / 8] + k % 2 * 2, is_half);
}
"""

INSTRUCTIONS = {
    r'asm volatile\("cp\.async\.cg.*?"memory"\);': "emulator_copy(to, from, bytes);",
    r'asm volatile\("cp\.async\.commit_group;".*?\);': "emulator_commit();",
    r'asm volatile\("cp\.async\.wait_group.*?"memory"\);': "emulator_arrive(N);",
    r'asm volatile\("wgmma\.wait_group.*?"memory"\);': "emulator_multiplied(N);",
    r'asm volatile\("wgmma\.commit_group.*?"memory"\);': "emulator_end();",
    r'asm volatile\("(wgmma\.fence|fence\.proxy).*?"memory"\);': "",
    r'asm volatile\("wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(\w+)\.[^;]*?; ?.*?"l"\(a\), "l"\(b\), "n"\(D\), "n"\(L\), "n"\(R\)\);': (
        lambda found: f"emulator_multiply(d, a, b, {found[1]}, {int(found[2] == 'f16')}, D, L, R);"
    ),
    r'asm volatile\("wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(\w+)\.[^;]*?; ?.*?"r"\(a\[3\]\), "l"\(b\), "n"\(D\), "n"\(R\)\);': (
        lambda found: f"emulator_multiply_own(d, a, b, {found[1]}, {int(found[2] == 'f16')}, D, R);"
    ),
    r'asm\("cvt\.rn\.(\w+)x2\.f32 %0, %1, %2;" : "=r"\(r\) : "f"\(b\), "f"\(a\)\);': (
        lambda found: f"r = emulator_pair(a, b, {int(found[1] == 'f16')});"
    ),
    r'asm volatile\("ldmatrix.*?"memory"\);': "emulator_fragments(r, p, T);",
    r'asm volatile\("mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.(\w+)\..*?"r"\(b\[1\]\)\);': (
        lambda found: f"emulator_mma(d, a, b, {int(found[1] == 'f16')});"
    ),
    r'asm\("\{\.reg \.b16 l, h;.*?: "r"\(r\)\);': (
        "s[k] = (float)__builtin_bit_cast(_Float16, (uint16_t)r), s[k + 1] = (float)__builtin_bit_cast(_Float16, (uint16_t)(r >> 16));"
    ),
    r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\(a\) : "h"\(h\)\);': "a = (float)__builtin_bit_cast(_Float16, h);",
    r'asm\("cvt\.f32\.f16 %0, %1;" : "=f"\(r\) : "h"\(h\)\);': "r = (float)__builtin_bit_cast(_Float16, h);",
    r'asm\("ex2\.approx\.ftz\.f32 %0, %1;" : "=f"\(y\) : "f"\(a\)\);': "y = exp2f(a);",
    r'asm\("rcp\.approx\.ftz\.f32 %0, %1;" : "=f"\(inverse\) : "f"\(b\)\);': "inverse = 1 / b;",
    r'asm\("cvt\.rn\.f16\.f(32|64) %0, %1;" : "=h"\(h\) : "[fd]"\(a\)\);': "h = __builtin_bit_cast(uint16_t, (_Float16)a);",
    r"extern __shared__ __align__\(\d+\) unsigned char rows\[\];": "unsigned char *const rows = emulator_runtime->shared;",
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
    if "emulator_copy" in text:
        runtime += TILES
    if os.environ.get("EMULATOR_WGMMA"):  # the instructions of sm_90a
        runtime += "#define __CUDA_ARCH_FEAT_SM90_ALL 1\n"
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
