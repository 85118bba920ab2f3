/* The wrapper IR: the steps of one call as a list of lines, with buffers already placed. Several consumers
 * interpret the same lines and must agree: the C executor (runtime/execute), the Python printer, the
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
 * Buffers that share one allocation: `pool0 = empty((4096,), (1,), 'u8')`, in which
 * `buf0 = part(pool0, 64, (8,), (1,), 'f64')` begins at byte 64.
 *
 * Intermediates and results are allocated in the same way. A kernel takes buffers in its own order, then the
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

/* The owner of memory: the host, or device number d, which is CI_SIDE_device + d. Without device memory all buffers are on the
 * first device's side. */
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
    CiSide side;                  /* extern, launch: the side of the memory that it uses */
    int number;                   /* symbol: axis; extern: position among the program's externs; join: its extern's */
    const CiExpr *symbol, *value; /* symbol; for: var and extent; define: symbol and limit */
    const char *text;             /* comment, check */
    const CiBuffer **frees;       /* test: buffers that the block has allocated there */
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
    const CiShapeEnv *env; /* sources of symbols; NULL: sizes of inputs */
    const CiBuffer **buffers; /* by id: the buffers of the loops, then copies that the wrapper adds */
    int nbuffers, capbuffers;
    int nsides;
    const CiBuffer ***sides; /* by side and buffer of the loops: the buffer, its copy there, or NULL */
    CiSide *side_of;         /* per buffer, copies included */
    int capsides;            /* capacity of side_of, pool_of and pinned */
    int first_pool;           /* buffers from this number on are pools */
    const CiBuffer **pool_of; /* per buffer: the pool that contains its memory; NULL: none */
    CiSide *pinned; /* per buffer: the device that can access this host memory; 0: none */
    CiLine *lines;
    int nlines, caplines;
    CiLiveRanges *ranges; /* live ranges; steps are lines, and a result lives up to the return */
    const struct CiPartitions *partitions; /* NULL: nothing is recorded */
    int nexterns; /* exclusive upper bound of the numbers of CI_LINE_extern lines */
    int64_t peak_bytes; /* peak memory in bytes; an estimate if sizes are unknown */
} CiWrapper;

/* Allocates the wrapper in the context of the loops. */
CiWrapper *ci_wrap(const CiKernels *kernels, const CiOptions *options, const CiShapeEnv *env);
/* True if all partitions are recorded; otherwise only those of loops whose launches take longer than their kernels. */
bool ci_wrapper_records_all(const CiWrapper *wrapper);
/* The side of the buffer's memory. */
CiSide ci_wrapper_side(const CiWrapper *wrapper, const CiBuffer *buffer);
/* True if the caller's allocator, if there is one, allocates this host buffer: a library call may then return its result in other
 * memory. Such a buffer is in no pool. False for buffers of parallel loops, whose threads allocate memory themselves. */
bool ci_wrapper_is_callers(const CiWrapper *wrapper, const CiBuffer *buffer);
/* The side that a library call runs on. */
CiSide ci_wrapper_side_of_call(const CiWrapper *wrapper, const CiExternItem *ext);
/* True if the buffer is in host memory; always true without device memory. */
bool ci_wrapper_is_on_host(const CiWrapper *wrapper, const CiBuffer *buffer);
const CiLineRow *ci_line_row(CiLineKind kind);
bool ci_line_opens(const CiLine *line);
bool ci_line_closes(const CiLine *line);
CiLineField ci_line_field(CiContext *ctx, const char *at, size_t length); /* the field with that name */
/* Prints the pattern of a row with its fields replaced, and expressions and texts in that style. */
void ci_line_print(CiText *out, const CiLine *line, const char *pattern, CiExprStyle style,
                   CiExprNames *names); /* of C; NULL: none */
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
/* Parses lines that use these kernels. options: those with which the kernels were compiled. Fails through the kernels'
 * context. */
CiWrapper *ci_wrapper_parse(const CiKernels *kernels, const CiOptions *options,
                            const CiShapeEnv *env, const char *text);
void ci_wrapper_print_python(CiText *out, const CiWrapper *wrapper);
/* NULL, or why the program cannot be printed as C. */
const char *ci_wrapper_why_no_c(const CiWrapper *wrapper);
/* The name of an operation that a kernel computes by a loop of NumPy's; NULL: there is none. */
const char *ci_wrapper_find_ufunc(const CiWrapper *wrapper);
/* Prints the program as C, after the source of its kernels. */
void ci_wrapper_print_c(CiText *out, const CiWrapper *wrapper, const CiProcs *procs);
/* procs: the procs of its kernels, whose launches are printed. source, flags, arch: the C source of its kernels, the compiler's
 * flags, and the processor level; NULL: omitted. */
void ci_wrapper_print_json(CiText *out, const CiWrapper *wrapper, const CiProcs *procs, const char *source,
                           const char *flags, const char *arch);

/* Bytes of a buffer in a pool, rounded up to whole cache lines. */
const CiExpr *ci_pool_capacity(CiSym *sym, const CiExpr *bytes);
/* Bytes of a dense buffer. */
const CiExpr *ci_buffer_bytes(CiSym *sym, const CiBuffer *buffer);

#endif
