/* Functions on vectors (csrc/vmath) in the place of NumPy's loops, where a test has shown that they
 * have NumPy's bits. The result does not depend on when the test runs: NumPy's loop computes the
 * elements before it, and those that a function leaves out. */
#include "device/ufunc.h"

#include "base/float_flags.h"

#include <string.h>

enum { MAX_BYTES = CI_VMATH_BLOCK * 8 };

/* Elements of a block. Complex numbers have two parts, of which a block has as many as of floats. */
static int
block_of(CiDtype dtype)
{
    return ci_dtype_real(dtype) != dtype ? CI_VMATH_BLOCK / 2 : CI_VMATH_BLOCK;
}

/* The test costs as much as NumPy's loop for so many elements, so the loop computes the first ones. */
#define TEST_POINTS (1 << 17)
#define FILLED 256 /* exponents in a row for NumPy's loop */

static int
lanes_of(CiDtype dtype)
{
    int parts = ci_dtype_real(dtype) == CI_DTYPE_f64 ? 4 : 8;
    return ci_dtype_real(dtype) != dtype ? parts / 2 : parts;
}

/* ---- one block ---- */

typedef struct Run {
    const CiUfuncVector *vector;
    const CiVmathRow *row;
    size_t size;    /* of an element */
    unsigned flags; /* those before, and those that NumPy's loop has raised since */
} Run;

static void
call_numpys(const Run *run, char *const *operands, char *out, intptr_t count)
{
    char *all[3] = {operands[0], run->row->nargs > 1 ? operands[1] : out, out};
    const intptr_t steps[3] = {(intptr_t)run->size, (intptr_t)run->size, (intptr_t)run->size};
    ci_ufunc_call(run->vector->numpys, all, &count, steps);
}

/* Packs the operands that were left out; their number. */
static int64_t
pack_rare(const Run *run, const CiVmathBlock *block, char (*packed)[MAX_BYTES], int16_t *positions,
          int64_t count)
{
    size_t size = run->size;
    int64_t n = 0;
    for (int k = 0; k < block->nrare; k++) {
        const CiVmathRare *rare = &block->rare[k];
        for (int lane = 0; lane < lanes_of(run->row->dtype); lane++) {
            int64_t position = rare->first + lane;
            if (!(rare->lanes >> lane & 1) || position >= count)
                continue;
            for (int a = 0; a < run->row->nargs; a++)
                memcpy(packed[a] + (size_t)n * size, rare->operands[a] + (size_t)lane * size, size);
            positions[n++] = (int16_t)position;
        }
    }
    return n;
}

/* NumPy's loop computes them, and its float flags are those of the block. */
static __attribute__((noinline)) void
finish_rare(Run *run, CiVmathBlock *block, int64_t count)
{
    char packed[2][MAX_BYTES], results[MAX_BYTES];
    int16_t positions[CI_VMATH_BLOCK];
    char *operands[2] = {packed[0], packed[1]};
    int64_t n = pack_rare(run, block, packed, positions, count);

    ci_float_flags_restore(run->flags);
    call_numpys(run, operands, results, (intptr_t)n);
    run->flags = ci_float_flags_read();
    for (int64_t k = 0; k < n; k++)
        memcpy(block->out + (size_t)positions[k] * run->size, results + (size_t)k * run->size, run->size);
}

typedef struct Wide {
    uint64_t parts[2];
} Wide;

#define COPY(type)                                                                                 \
    for (int64_t k = 0; k < count; k++) {                                                          \
        type x;                                                                                    \
        memcpy(&x, from + k * from_step, sizeof x);                                                \
        memcpy(to + k * to_step, &x, sizeof x);                                                    \
    }

static void
copy(char *to, intptr_t to_step, const char *from, intptr_t from_step, int64_t count, size_t size)
{
    if (size == 16)
        COPY(Wide)
    else if (size == 8)
        COPY(uint64_t)
    else if (size == 4)
        COPY(uint32_t)
    else
        COPY(uint16_t)
}

/* Float flags are not read after it, because that takes longer than the function: for operands that are
 * not left out, functions raise none but that of underflow.
 *
 * NumPy's loops of one double or complex number call the C library, which takes less time than a vector. */
static void
run_one(const CiUfuncVector *vector, const CiVmathRow *row, char **operands)
{
    Run run = {vector, row, ci_dtype_size(row->dtype), ci_float_flags_read()};
    CiVmathBlock block;
    block.operands[0] = operands[0];
    block.operands[1] = row->nargs > 1 ? operands[1] : NULL;
    block.out = operands[row->nargs];
    block.count = 1;
    block.nrare = 0;
    if (run.size >= 8) {
        call_numpys(&run, operands, block.out, 1);
        return;
    }
    row->run(&block);
    if (block.nrare > 0)
        finish_rare(&run, &block, 1);
}

/* Computes `count` elements, a whole number of vectors or less than one. */
static void
run_block(Run *run, char **operands, const intptr_t *steps, int64_t count)
{
    char buffers[3][MAX_BYTES];
    const int nargs = run->row->nargs, lanes = lanes_of(run->row->dtype);
    const int64_t whole = count < lanes ? lanes : count;
    const bool is_part = count < lanes;
    const intptr_t size = (intptr_t)run->size;
    bool is_direct = !is_part && steps[nargs] == size;
    CiVmathBlock block;

    block.count = whole;
    block.nrare = 0;
    block.operands[1] = NULL;
    block.out = is_direct ? operands[nargs] : buffers[2];
    for (int a = 0; a < nargs; a++) {
        block.operands[a] = operands[a];
        if (is_part || steps[a] != size) {
            copy(buffers[a], size, operands[a], steps[a], count, run->size);
            copy(buffers[a] + count * size, size, operands[a], 0, whole - count, run->size);
            block.operands[a] = buffers[a];
        }
    }
    run->row->run(&block);
    if (block.nrare > 0)
        finish_rare(run, &block, count);
    if (!is_direct)
        copy(operands[nargs], steps[nargs], buffers[2], size, count, run->size);
}

static void
run_all(const CiUfuncVector *vector, const CiVmathRow *row, char **operands, int64_t count,
        const intptr_t *steps)
{
    const int lanes = lanes_of(row->dtype);
    Run run = {vector, row, ci_dtype_size(row->dtype), ci_float_flags_read()};
    char *at[3] = {operands[0], operands[1], row->nargs > 1 ? operands[2] : NULL};

    while (count > 0) {
        int64_t n = count < block_of(row->dtype) ? count : block_of(row->dtype);
        if (n > lanes)
            n -= n % lanes;
        run_block(&run, at, steps, n);
        for (int a = 0; a <= row->nargs; a++)
            at[a] += n * steps[a];
        count -= n;
    }
    ci_float_flags_restore(run.flags);
}

/* ---- the test ---- */

/* Numbers at which known versions of NumPy and the C library differ. */
static const double telling[] = {0, 1, -1, 2, 951.1171875, 1863.75, 87.17919921875, 608.68359375, 0x1.0e2d4ep+5,
                                 0x1.60caf12bcaccap-4, 0x1.5fedef031a37cp-2, -0x1.34ca29f52b2a8p+9,
                                 0x1.a8279ap-2, 0x1.a8279cp-2, 0x1.599340p+5, -0x1.fa23dap+12};

typedef struct Points {
    uint64_t state;
    CiDtype dtype; /* of parts */
} Points;

/* G. Marsaglia, "Xorshift RNGs", 2003. */
static uint64_t
next_bits(Points *points)
{
    points->state ^= points->state << 13;
    points->state ^= points->state >> 7;
    points->state ^= points->state << 17;
    return points->state;
}

/* 2^exponent, of a normal number. */
static double
two_to(int exponent)
{
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* Within 4096 units in the last place of a power of two, or of that and a quarter, half, or more. */
static double
near_corner(Points *points, int width)
{
    uint64_t bits = next_bits(points);
    double corner = (double)(4 + (bits & 3)) * two_to((int)(bits >> 2 & 31) - 24);
    int64_t units = (int64_t)(bits >> 8 & 8191) - 4096;
    double unit = corner * two_to(-width);
    return (bits >> 32 & 1 ? -1 : 1) * (corner + (double)units * unit);
}

static double
next_number(Points *points, int kind)
{
    double unit = (double)(next_bits(points) >> 11) * 0x1p-53;
    switch (kind) {
    case 0:
        return 2 * unit - 1;
    case 1:
        return 256 * unit - 128;
    case 2:
        return (next_bits(points) & 64 ? 1 + unit : -1 - unit) * two_to((int)(next_bits(points) >> 40 & 63) - 32);
    case 3:
        return near_corner(points, points->dtype == CI_DTYPE_f64 ? 52 : 23);
    case 4:
        return 1000 * unit;
    default:
        return telling[next_bits(points) % (sizeof telling / sizeof *telling)];
    }
}

static void
fill(Points *points, char *to, int kind)
{
    intptr_t size = (intptr_t)ci_dtype_size(points->dtype);
    uint64_t patterns[CI_VMATH_BLOCK]; /* the low bytes are the operands */
    for (int k = 0; k < CI_VMATH_BLOCK; k++) {
        uint64_t bits = next_bits(points);
        double number = kind < 6 ? next_number(points, kind) : 0;
        float rounded = (float)number;
        if (kind < 6 && points->dtype == CI_DTYPE_f64)
            memcpy(&bits, &number, sizeof number);
        else if (kind < 6 && points->dtype == CI_DTYPE_f32)
            memcpy(&bits, &rounded, sizeof rounded);
        patterns[k] = bits;
    }
    copy(to, size, (const char *)patterns, sizeof *patterns, CI_VMATH_BLOCK, (size_t)size);
}

static uint64_t
bits_at(const char *from, int64_t k, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, from + (size_t)k * size, size);
    return bits;
}

static bool
is_nan(uint64_t bits, CiDtype dtype)
{
    return dtype == CI_DTYPE_f64   ? (bits & INT64_MAX) > UINT64_C(0x7ff) << 52
           : dtype == CI_DTYPE_f32 ? (bits & INT32_MAX) > UINT64_C(0xff) << 23
                                   : (bits & INT16_MAX) > UINT64_C(0x1f) << 10;
}

/* The first element, or part of a complex one, that differs from NumPy's in a block; 0 also if float flags do;
 * -1: none. Changes the float flags. */
static int64_t
find_difference(const CiUfuncVector *vector, const CiVmathRow *row, char *const *operands)
{
    char got[MAX_BYTES], wanted[MAX_BYTES];
    size_t size = ci_dtype_size(row->dtype), part = ci_dtype_size(ci_dtype_real(row->dtype));
    CiDtype parts = ci_dtype_real(row->dtype);
    Run run = {vector, row, size, 0};
    char *all[3] = {operands[0], row->nargs > 1 ? operands[1] : got, got};
    const intptr_t steps[3] = {(intptr_t)size, (intptr_t)size, (intptr_t)size};

    ci_float_flags_clear();
    call_numpys(&run, operands, wanted, block_of(row->dtype));
    unsigned flags = ci_float_flags_read();
    ci_float_flags_clear();
    run_block(&run, all, steps, block_of(row->dtype));
    if ((flags ^ ci_float_flags_read()) & ~(unsigned)FE_UNDERFLOW)
        return 0;
    if (memcmp(got, wanted, part * CI_VMATH_BLOCK) == 0)
        return -1;
    for (int64_t k = 0; k < CI_VMATH_BLOCK; k++) {
        uint64_t a = bits_at(got, k, part), b = bits_at(wanted, k, part);
        if (a != b && !(is_nan(a, parts) && is_nan(b, parts)))
            return k;
    }
    return -1;
}

static bool
is_equal(const CiUfuncVector *vector, const CiVmathRow *row)
{
    char a[MAX_BYTES], b[MAX_BYTES];
    char *operands[2] = {a, b};
    Points points = {UINT64_C(0x9e3779b97f4a7c15), ci_dtype_real(row->dtype)};

    for (int k = 0; k < TEST_POINTS / CI_VMATH_BLOCK; k++) {
        fill(&points, a, k % 8);
        if (row->nargs > 1)
            fill(&points, b, k / 8 % 8);
        if (find_difference(vector, row, operands) >= 0)
            return false;
    }
    return true;
}

static const CiVmathRow none;

/* The verdict of an earlier process; NULL: there is none. */
static const CiVmathRow *
recall(CiUfuncVector *vector)
{
    int variant;
    if (ci_ufunc_decision_read(vector, &variant) == 0)
        return NULL;
    const CiVmathRow *row = variant < 0 ? &none : &vector->rows[variant];
    atomic_store_explicit(&vector->row, row, memory_order_release);
    return row;
}

static const CiVmathRow *
test(CiUfuncVector *vector)
{
    unsigned flags = ci_float_flags_read();
    const CiVmathRow *row = &none;
    for (int k = vector->nrows - 1; k >= 0; k--)
        row = is_equal(vector, &vector->rows[k]) ? &vector->rows[k] : row;
    ci_float_flags_restore(flags);
    atomic_store_explicit(&vector->row, row, memory_order_release);
    ci_ufunc_decision_write(vector, row == &none ? -1 : (int)(row - vector->rows), TEST_POINTS);
    return row;
}

const CiVmathRow *
ci_ufunc_vector_decide(CiUfuncVector *vector)
{
    const CiVmathRow *row = atomic_load_explicit(&vector->row, memory_order_acquire);

    if (row == NULL && vector->nrows > 0)
        row = recall(vector);
    if (row == NULL && vector->nrows > 0)
        row = test(vector);
    return row != NULL && row->run != NULL ? row : NULL;
}

/* ---- the loop ---- */

/* The first call asks for an earlier verdict; the one that reaches the number of elements tests. */
static const CiVmathRow *
decide_by_count(CiUfuncVector *vector, intptr_t count)
{
    int64_t before = atomic_fetch_add_explicit(&vector->computed, count, memory_order_relaxed);
    if (before < TEST_POINTS && before + count >= TEST_POINTS)
        return ci_ufunc_vector_decide(vector);
    return before == 0 ? recall(vector) : NULL;
}

/* Calls NumPy's loop. A step of zero says that a value is computed once. It does not say that a power has one exponent
 * for all elements, for which NumPy's loop of powers computes squares, roots and reciprocals: it gets the exponents
 * one after another. The loop of float16 has no such forms. */
static void
call_loop(const CiUfuncVector *vector, char **operands, intptr_t count, const intptr_t *steps)
{
    size_t size = ci_dtype_size(vector->rows[0].dtype);
    char exponents[FILLED * sizeof(double)];

    if (vector->rows[0].op != CI_OP_power || vector->rows[0].dtype == CI_DTYPE_f16 || steps[1] != 0) {
        ci_ufunc_call(vector->numpys, operands, &count, steps);
        return;
    }
    for (size_t k = 0; k < FILLED; k++)
        memcpy(exponents + k * size, operands[1], size);
    for (intptr_t done = 0, part; done < count; done += part) {
        part = count - done < FILLED ? count - done : FILLED;
        char *operands_here[] = {operands[0] + done * steps[0], exponents, operands[2] + done * steps[2]};
        const intptr_t steps_here[] = {steps[0], (intptr_t)size, steps[2]};
        ci_ufunc_call(vector->numpys, operands_here, &part, steps_here);
    }
}

static void
run_vectors(char **operands, const intptr_t *count, const intptr_t *steps, void *data)
{
    CiUfuncVector *vector = data;
    const CiVmathRow *row = atomic_load_explicit(&vector->row, memory_order_acquire);

    if (row == NULL)
        row = decide_by_count(vector, *count);
    if (row == NULL || row->run == NULL) {
        call_loop(vector, operands, *count, steps);
    } else if (*count == 1) {
        run_one(vector, row, operands);
    } else {
        run_all(vector, row, operands, *count, steps);
    }
}

CiUfuncLoop
ci_ufunc_vector_open(CiUfuncVector *vector, CiOp op, CiDtype dtype, CiUfuncLoop numpys,
                     const CiUfuncVerdicts *verdicts)
{
    vector->numpys = numpys;
    vector->verdicts = verdicts;
    vector->rows = ci_vmath_find(op, dtype, &vector->nrows);
    return vector->nrows > 0 ? (CiUfuncLoop){run_vectors, vector, true} : numpys;
}

int64_t
ci_ufunc_vector_check(const CiUfuncVector *vector, const CiVmathRow *row, uint64_t first,
                      uint64_t step, int64_t blocks, uint64_t *example)
{
    char a[MAX_BYTES], b[MAX_BYTES];
    char *operands[2] = {a, b};
    size_t size = ci_dtype_size(ci_dtype_real(row->dtype));
    Points points = {first | 1, ci_dtype_real(row->dtype)};
    unsigned flags = ci_float_flags_read();
    int64_t found = 0;

    for (int64_t k = 0; k < blocks; k++) {
        for (int64_t i = 0; i < CI_VMATH_BLOCK; i++) {
            uint64_t bits = first + step * (uint64_t)(k * CI_VMATH_BLOCK + i);
            memcpy(a + (size_t)i * size, &bits, size);
        }
        if (step == 0)
            fill(&points, a, (int)(k % 8));
        if (row->nargs > 1)
            fill(&points, b, (int)(k / 8 % 8));
        int64_t position = find_difference(vector, row, operands);
        if (position >= 0 && found++ == 0)
            *example = bits_at(a, position, size);
    }
    ci_float_flags_restore(flags);
    return found;
}
