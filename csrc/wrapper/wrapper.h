/* The wrapper IR: what one call does, line by line, with buffers already placed. Several consumers
 * read the same lines and must agree: the C executor (runtime/execute), the Python printer, the
 * JSON printer, the verifier.
 *
 * A buffer has one pointer while the program runs: an input's, an allocation's, or that of a dead
 * buffer whose memory it reuses. If devices have separate memory, a buffer has a home device and
 * may have copies on others (`sides`). Kernels use the copy on their own device; library calls and
 * conditions use the host's. Copy lines keep them up to date.
 *
 * Printed as Python the lines are a function over names the binding provides:
 *
 *   def call(in0, in1, n2):                        # one name per graph input, scalars too
 *       assert_size_stride(in0, (128, 256), (256, 1))
 *       buf0 = empty((128, 64), (64, 1), 'f32')    # strides in elements
 *       k0(in0, buf0, n2)                          # net.py:7
 *       matmul0(as_strided(in0, 0, (64,), (1,)), in1, buf1)
 *       buf2 = as_strided(buf0, 0, (8192,), (1,))  # takes over its memory
 *       del buf0
 *       return (buf2, as_strided(buf1, 3, (5,), (-1,)))
 *
 * Allocations that share one: `pool0 = empty((4096,), (1,), 'u8')`, in which
 * `buf0 = part(pool0, 64, (8,), (1,), 'f64')` begins at byte 64.
 *
 * Intermediates and results are made alike. A kernel takes buffers in its own order, then the
 * scalars it reads; a library call its operands, then its result, and is numbered as the program
 * numbers externs.
 *
 * With size symbols a line `s0 = in0.shape[1]` defines each, and a kernel that needs sizes takes
 * all the program's symbols after its scalars. Device programs also use empty_host, to_device(host,
 * device) and to_host(device, host). start_to_host(device, host) is asynchronous: its target is
 * made by empty_pinned(…), and wait(host) precedes the first read. mark(host) after a launch stands for
 * its stores to such memory. Programs for several devices use
 * across(from, to), and prefix kernels and allocations with the device number: on1.k0(…),
 * on1.empty(…); the first device has no prefix. Regions use item(condition). A data-dependent
 * symbol is `u0 = item(buf3)`, and check(condition, text) raises if the condition is false. */
#ifndef CI_WRAPPER_WRAPPER_H
#define CI_WRAPPER_WRAPPER_H

#include "base/options.h"
#include "ir/proc.h"
#include "analysis/live_ranges.h"

typedef enum CiLineKind {
#define LINE(kind, buffer, other, block, record, text, python, c) CI_LINE_##kind,
#include "wrapper/lines.def"
    CI_LINE_COUNT
} CiLineKind;

/* Whose memory: the host's, or that of device number d, which is CI_SIDE_device + d. Without device
 * memory all is on the first device's side. */
typedef int CiSide;
enum { CI_SIDE_host, CI_SIDE_device };

/* The effect of a line on its buffers, and its position among blocks (lines.def). */
typedef enum CiLineUse {
    CI_USE_none,
    CI_USE_named,
    CI_USE_loads,
    CI_USE_stores,
    CI_USE_defines,
    CI_USE_last
} CiLineUse;

typedef enum CiLineBlock {
    CI_BLOCK_inside,
    CI_BLOCK_opens,
    CI_BLOCK_reopens,
    CI_BLOCK_closes,
    CI_BLOCK_last
} CiLineBlock;

typedef enum CiLineRecord { CI_RECORD_records, CI_RECORD_passes, CI_RECORD_cuts } CiLineRecord;

typedef struct CiLineRow {
    const char *name;
    CiLineUse buffer, other;
    CiLineBlock block;
    CiLineRecord record;
    const char *text, *python, *c;
} CiLineRow;

/* The fields that patterns name: FIELD(name, type, its first member in CiLine). range: a symbol and
 * its limit; iterations: a loop's variable and extent; call: the kernel that is a library call. */
#define CI_LINE_FIELDS(FIELD)                                                                      \
    FIELD(buffer, buffer, buffer)                                                                  \
    FIELD(other, buffer, other)                                                                    \
    FIELD(at, side, at)                                                                            \
    FIELD(side, side, side)                                                                        \
    FIELD(bytes, expr, bytes)                                                                      \
    FIELD(value, expr, value)                                                                      \
    FIELD(symbol, symbol, symbol)                                                                  \
    FIELD(number, int, number)                                                                     \
    FIELD(kernel, kernel, kernel)                                                                  \
    FIELD(call, call, call)                                                                        \
    FIELD(range, range, symbol)                                                                    \
    FIELD(iterations, iterations, symbol)                                                          \
    FIELD(parallel, parallel, is_parallel)                                                         \
    FIELD(text, text, text)

typedef enum CiLineFieldType {
    CI_FIELD_buffer,
    CI_FIELD_side,
    CI_FIELD_expr,
    CI_FIELD_symbol,
    CI_FIELD_int,
    CI_FIELD_kernel,
    CI_FIELD_call,
    CI_FIELD_range,
    CI_FIELD_iterations,
    CI_FIELD_parallel,
    CI_FIELD_text
} CiLineFieldType;

typedef struct CiLineField {
    const char *name;
    CiLineFieldType type;
    size_t offset;
} CiLineField;

typedef struct CiLine {
    CiLineKind kind;
    const CiBuffer *buffer; /* test, if: the condition, one bool in host memory */
    const CiBuffer *other;
    CiSide at;              /* alloc, free, reuse, copy: the side of `buffer` */
    const CiExpr *bytes;    /* alloc, reuse, free, copy */
    const CiKernel *kernel; /* launch */
    const CiExternItem *ext;
    const char *call;             /* extern: the name of its kernel, for the text */
    CiSide side;                  /* extern, launch: whose memory it works on */
    int number;                   /* symbol: axis; extern: position among the program's externs; join: its extern's */
    const CiExpr *symbol, *value; /* symbol; for: var and extent; define: symbol and limit */
    const char *text;             /* comment, check */
    const CiBuffer **frees;       /* test: what the block holds there */
    int nfrees;
    bool is_parallel; /* for: its iterations may run at the same time */
    int match; /* for, while, if, else: the line that closes the block: its else or end */
    int open;  /* else, end: the line that opened the block they close; test: its while */
    CiLoc loc;
} CiLine;

typedef struct CiWrapper {
    CiContext *ctx;
    const CiKernels *kernels; /* loops, buffers, results through it */
    const CiMachine *machine;
    CiOptions options;
    const CiShapeEnv *env; /* where symbols come from; NULL: extents that inputs show */
    const CiBuffer **buffers; /* by id: those of the loops, then copies made here */
    int nbuffers, capbuffers;
    int nsides;
    const CiBuffer ***sides; /* per side, per buffer of the loops: itself, its copy there, or NULL */
    CiSide *side_of;         /* per buffer, copies included */
    int capsides;            /* of side_of, pool_of and pinned */
    int first_pool;           /* pools are the buffers from here on */
    const CiBuffer **pool_of; /* per buffer: whose memory its own is part of; NULL: it has its own */
    CiSide *pinned; /* per buffer: the device that reaches this host memory by itself; 0: none */
    CiLine *lines;
    int nlines, caplines;
    CiLiveRanges *ranges; /* of the program's own; steps are lines, of a result `last` is the return */
    const struct CiPartitions *partitions; /* NULL: without recordings */
    int nexterns; /* CI_LINE_extern lines' numbers are below it */
    int64_t peak_bytes; /* bytes at its worst, likely ones where sizes are not known */
} CiWrapper;

/* Lives in the context of the loops. */
CiWrapper *ci_wrap(const CiKernels *kernels, const CiOptions *options, const CiShapeEnv *env);
/* All partitions are recorded; else those of loops whose launches take longer than their kernels. */
bool ci_wrapper_records_all(const CiWrapper *wrapper);
/* Whose memory the buffer's own is. */
CiSide ci_wrapper_side(const CiWrapper *wrapper, const CiBuffer *buffer);
/* The side that a library call runs on. */
CiSide ci_wrapper_side_of_call(const CiWrapper *wrapper, const CiExternItem *ext);
/* Without device memory everything is. */
bool ci_wrapper_is_on_host(const CiWrapper *wrapper, const CiBuffer *buffer);
const CiLineRow *ci_line_row(CiLineKind kind);
bool ci_line_opens(const CiLine *line);
bool ci_line_closes(const CiLine *line);
CiLineField ci_line_field(CiContext *ctx, const char *at, size_t length); /* by its name */
/* The pattern of a row, filled in; expressions and texts in that style. */
void ci_line_print(CiText *out, const CiLine *line, const char *pattern, CiExprStyle style);
/* Calls visit for each buffer whose memory a line reads or writes (scalars are none). */
void ci_line_visit(const CiWrapper *wrapper, const CiLine *line,
                   void (*visit)(void *arg, const CiBuffer *buffer, bool is_stored), void *arg);
/* Calls visit once for each run-time scalar a kernel reads, by their numbers among CiCall.scalars.
 */
void ci_kernel_visit_scalars(const CiKernels *kernels, const CiKernel *kernel,
                             void (*visit)(void *arg, const CiBuffer *buffer, int slot), void *arg);
/* The printed name of an extern's function: its name, or "extern" when that is no identifier. */
const char *ci_extern_print_name(const CiExtern *ext);
/* Buffers are allocated before use, freed once, not used after; symbols defined before use. */
void ci_wrapper_verify(const CiWrapper *wrapper);
void ci_wrapper_print(CiText *out, const CiWrapper *wrapper);
/* Lines of these kernels; the options are those they were made with. Fails through the kernels' context. */
CiWrapper *ci_wrapper_parse(const CiKernels *kernels, const CiOptions *options,
                            const CiShapeEnv *env, const char *text);
void ci_wrapper_print_python(CiText *out, const CiWrapper *wrapper);
/* Prints after the source of its kernels. ci_wrapper_why_no_c: NULL, or why the program needs more
 * than C. */
const char *ci_wrapper_why_no_c(const CiWrapper *wrapper);
/* The name of an operation that a kernel computes by a loop of NumPy's; NULL: there is none. */
const char *ci_wrapper_find_ufunc(const CiWrapper *wrapper);
void ci_wrapper_print_c(CiText *out, const CiWrapper *wrapper, const CiProcs *procs);
/* procs: of its kernels, whose launches are printed; source, flags, arch: of its kernels, what a compiler is given with it,
 * and the level of processors; NULL: left out. */
void ci_wrapper_print_json(CiText *out, const CiWrapper *wrapper, const CiProcs *procs, const char *source,
                           const char *flags, const char *arch);

/* Bytes of a part of a pool: whole lines of a cache, so that the next one begins with one. */
const CiExpr *ci_pool_capacity(CiSym *sym, const CiExpr *bytes);
/* Of a dense buffer. */
const CiExpr *ci_buffer_bytes(CiSym *sym, const CiBuffer *buffer);

#endif
