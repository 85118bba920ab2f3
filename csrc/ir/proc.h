/* The statement level: each kernel as a proc, a list of loops, loads, operations and stores.
 *
 *   symbols {s0 in [0, inf), s1 in [1, inf)}
 *   procs f {
 *     proc k0(const in0: f32[s0*s1], buf1: f32[s0]; s0, s1) over i0 {
 *       for i0<s0 parallel {
 *         alloc buf0: f32[1] register
 *         fold sum into buf0 over r0<s1 in lanes {
 *           %0: f32 = load in0[s1*i0 + r0]
 *           yield %0
 *         }
 *         %1: f32 = load buf0[0]
 *         store buf1[i0] = %1
 *       }
 *     }
 *   }
 *
 * The head of a proc, after its parameters, has the instructions for passes that have not run yet (CiProcHead).
 * `finishes k0`: the proc runs after k0. `tree`: its loops are those of regions. A builder replaces
 * the loops of a `template product`. Points are loops `over i0, i1 by 64 in lanes`: i1 has tiles of
 * 64 iterations, which are lanes. `rows [s1] up to 16`: shorter rows are lanes. A reduction is split
 * into `parts [46] of [65536]`. Without `of` the parts are subtrees. The parts of a scan may be
 * `chained`: each starts from the prefix that the one before publishes. With `totals first` each
 * computes its total before it waits.
 *
 * Loops count from 0 to their extent in steps of one, and say how they run. Iterations of
 * `for t0<n serial in order {` may read what those before them have stored. The body of
 * `for i0<n parallel runs m_1` runs m_1 neighbouring iterations at once, the first of which is i0.
 * Memory says where it lives; register memory is indexed by constants once loops that unroll are
 * gone. A value is defined once, has a number as its name, and is visible to the end of its block; a
 * value of several lanes is a vector (`f32x16`, `boolx16`).
 *
 * Index expressions name sizes, loop variables and bound symbols: `%3: i64 = bind %2 [at0<n]` makes
 * at0 the value of %2, which is in [0, n). If %2 is a vector, at0 and each index that uses it have a
 * value per lane: an access at such an index is a gather or a scatter.
 *
 * All accesses have one syntax: lane l of `load m[i] stride [s] live [n] else 0` is element i + l*s of m
 * where l < n, and a bound symbol in i has its value in lane l. Other lanes access nothing, and the
 * result of a load there is the value after `else`. The default stride is 1, and all lanes are live by default; a
 * gather and a scatter have no default stride. n may be negative: then no lane is live. The lanes
 * of one store run in order: with an operation (`store add m[i] = %1`) each lane combines its value with
 * the result of the lanes before it. If several stores `store m[i] = %1 in order` address one element,
 * the last one determines it.
 *
 * A bool in lanes is a mask if its type has a number of bits (proc_masks.c): `%3: bool32x8 = less %1, %2` has lanes of 32
 * bits, all of which are set where it is true.
 *
 * Accesses of `load m[8*c + 4] pointer 1` and `load m[8*c + 12] pointer 1` share a pointer to m[8*c] (proc_pointers.c).
 *
 * On machines without vector registers, `%2: f32x4 = sqrt %1 joined` means that one loop over lanes executes the
 * statement and the one before it. An access `aligned` moves its lanes at once, and the lanes of a load `shifted` are
 * those of two aligned loads in its loop (proc_lane_loops.c).
 *
 * `apply numpy_exp y[0] of x[i] for [n]` calls the loop of a ufunc for n elements. It replaces a let
 * with such an operation. Stride [0] is one element for all n.
 *
 * `copy m[i] of x[j] for [8]` is an asynchronous copy of contiguous elements to shared memory; elements that are not live
 * become zeros. `commit` ends a batch of the block's copies. `synchronize 2` is a barrier after all batches but the last two
 * have arrived. A `multiply` runs until a later one has begun and ended, or until `synchronize 0`: `multiply sums[0] of
 * left[0], right[0] for [64] below [128] across 0` adds the product of two tiles in shared memory, with 64 steps and 128
 * columns, to sums of the threads. A tile has a line of 64 steps for each row (or column). `across 1` has lines of 64
 * rows for each step in the left one, and all steps of 64 rows before those of the next, `across 2` the same in the right
 * one. In line n the chunk k of 8 elements is at place k ^ n % 8 (swizzle). `across 4`: the product has ended at the end
 * of the statement; `across 8`: sums are set, not added to; `across 16`: they are then rounded to the type of the right
 * factor. The left factor may be sums of the threads instead of a tile, with columns from the index on, rounded to the type
 * of the right one. It may have several times 64 steps: the right tiles follow each other. Rows are half of the threads. A warp has 16
 * rows: thread t has columns 8*j + 2*(t % 4) and the next one of rows t % 32 // 4 and the eighth after it, in this order.
 *
 * `prefetch m[i]` prefetches an element; its address may be out of bounds.
 *
 * `loop` repeats until an `exit`, which leaves the innermost loop of any kind. `stop 3` ends the
 * kernel with fault number 3. `poll [n]` counts n units of work, and after many of them ends the
 * kernel if it has been cancelled. `%5: f64 = cumsum %4 in acc from [j0]` is a scan: acc has the
 * result so far, lanes come in order, and the lane at position 0 starts. `fold` and `yield` exist
 * until the pass `reduce`. A fold has one or more reductions, each with its own accumulators (argmax:
 * the value and its position; welford: count, mean, sum of squares). The yield at the end of the
 * body has the operands of all reductions, in order. `from [f] for [n]` restricts the fold to a range of its
 * points, in C order; `of blocks [n]` states that each operand is the sum of a block; the
 * first n blocks are whole.
 *
 * Units of a parallel loop start in order, so a unit may wait for the unit before it. `wait [c0]`
 * waits until that unit has published. `publish [c0]` comes after the stores to partials that the
 * next unit reads. `%6: bool = turn [c0]` is true if the unit before has published already when this unit
 * first starts. A long wait may end the unit. It is restarted when the unit before it has published, and
 * then reads the values that it had stored to its own elements of partials. A chained scan:
 *
 *       for c0<8 parallel {
 *         %6: bool = turn [c0]
 *         if %6 {  …running = prefix[0]…  } else {
 *           if not known[c0] {  …total[c0] = what the part adds, known[c0] = true…  }
 *           wait [c0]
 *           …running = prefix[0], prefix[0] = running + total[c0]…
 *           publish [c0]
 *         }
 *         …the part's elements, from running on…
 *         if %6 {  …prefix[0] = running…  publish [c0]  }
 *       }
 */
#ifndef CI_IR_PROC_H
#define CI_IR_PROC_H

#include "ir/kernel.h"
#include "ir/text_common.h"

#define CI_MAX_FOLD_AXES 8
/* Bytes between two partial results of one unit. */
#define CI_PARTIAL_STEP 16
/* Iterations between two checks for cancellation. */
#define CI_POLL_ITERATIONS 65536

typedef enum CiRunMode {
#define RUN(name) CI_RUN_##name,
#include "ir/proc.def"
    CI_RUN_COUNT
} CiRunMode;

typedef enum CiSpace {
#define SPACE(name) CI_SPACE_##name,
#include "ir/proc.def"
    CI_SPACE_COUNT
} CiSpace;

typedef enum CiStmtKind {
#define STMT(name, blocks, access, text) CI_STMT_##name,
#include "ir/proc.def"
    CI_STMT_COUNT
} CiStmtKind;

typedef enum CiIntrinsic {
#define INTRINSIC(name, operands, has_result, has_cell, effect) CI_INTRINSIC_##name,
#include "ir/proc.def"
    CI_INTRINSIC_COUNT
} CiIntrinsic;

typedef enum CiCompare {
#define COMPARE(name, sign) CI_COMPARE_##name,
#include "ir/proc.def"
    CI_COMPARE_COUNT
} CiCompare;

/* The type of a value. */
typedef struct CiType {
    CiDtype dtype;
    int lanes;
    int mask; /* of a bool in lanes: bytes per lane of a mask, whose bits are all equal; 0: the bool is a byte, 0 or 1 */
} CiType;

typedef struct CiMemory {
    const char *name;
    CiDtype dtype;
    int lanes; /* of an element: elements of register and stack memory may be vectors */
    int mask;  /* of an element: as in CiType */
    CiSpace space;
    const CiExpr *size;   /* valid elements are [first, size) */
    const CiExpr *first;  /* NULL: 0; negative if the buffer has negative strides */
    const CiExpr *offset; /* scratch, partials: offset in bytes from the start of that space; else NULL */
    bool is_const;
    const CiBuffer *buffer; /* the kernel level's buffer, or NULL */
} CiMemory;

typedef struct CiAccess {
    CiMemory *memory;
    const CiExpr *index, *stride; /* NULL: 1 */
    bool is_aligned;   /* one instruction loads or stores all lanes; set by lane_loops */
    bool is_shifted;   /* its lanes come from two aligned loads of the same loop over lanes; set by lane_loops */
    int pointer;       /* number of the pointer that it uses, from 1; 0: none; set by pointers */
    CiConst otherwise; /* the value of a load in lanes that are not live; default 0 */
} CiAccess;

typedef struct CiCondition {
    CiCompare compare;
    const CiExpr *left, *right; /* of index expressions */
    int value;                  /* is, not: a bool */
} CiCondition;

typedef struct CiBuild CiBuild;
typedef struct CiStmt CiStmt;
typedef struct CiStmts {
    CiStmt *first, *last;
} CiStmts;

struct CiStmt {
    CiStmtKind kind;
    CiStmt *next;
    CiLoc loc;           /* source line of the user, or none */
    CiStmts body, other; /* for, loop, fold, if; other: the else branch */
    bool in_lane_loop;   /* executed by the previous statement's loop over lanes; set by lane_loops */
    /* for, and fold (whose points are in C order) */
    const CiExpr **vars, **extents;
    int nvars;
    CiRunMode run;
    const CiExpr *runs; /* of a parallel loop: symbol of the number of iterations that one run of
                           the body executes, from the variable on. NULL: one */
    /* let, call: number of the result, or -1, and of the operands; store, yield: operands only */
    int value;
    CiType type;
    CiOp op;          /* of a store: the operation that combines, or CI_OP_none */
    bool is_in_order; /* store: several lanes or iterations may address one element, and the last one
                         determines it; for: an iteration may read elements stored by earlier ones */
    bool is_atomic;   /* threads may access the element at the same time. A store combines, or all threads
                         store the same value; a load may read an element that others store */
    int *args;
    int nargs;
    const CiExpr *expr; /* index, iota: the expression; bind: the symbol; scan: the position;
                           poll: number of iterations; apply: number of elements */
    CiConst constant;   /* const */
    const CiExpr *live; /* number of live lanes, the first ones; NULL: all. Other lanes are undefined */
    CiAccess at;        /* load, store, call; apply: its results, which are contiguous */
    CiAccess in[2];     /* apply, multiply: the operands; copy: the source */
    int nin;
    CiMemory *cell;        /* scans and calls: memory carried from lane to lane */
    const CiExpr *limit;   /* pack, bind: exclusive upper bound of the cell or symbol; NULL: none */
    CiIntrinsic intrinsic; /* call */
    CiMemory *memory;      /* alloc; swap */
    CiMemory *partner;     /* swap: memory and partner exchange their contents */
    CiCondition *tests;    /* if, exit, stop: the conjunction of all tests; no tests: true */
    int ntests;
    int number; /* stop: number of the check in the kernel. grid: neighbouring points that share a block of the GPU
                   without waiting for each other. reduce: distance of the threads; 0: one thread. near: threads of
                   a group. synchronize: batches that need not have arrived. multiply: the bits after `across` */
    /* fold */
    CiFoldOrder order;
    CiOp *ops;
    CiMemory **into; /* accumulators: ci_fold_width of them for each operation */
    int nops, ninto;
    const CiExpr *from, *count; /* range of its points, in C order; NULL: all points */
    const CiExpr *blocks;       /* operands are sums of blocks of a fold in lanes or rows: this many
                                   whole blocks, and perhaps a partial one; NULL: they are elements */
};

/* An outer axis of a kernel. */
typedef struct CiPointAxis {
    const char *var; /* variable of its loop */
    int tile;        /* iterations of one tile, or 0 */
} CiPointAxis;

/* Properties of a kernel that the statements of its proc do not express. Passes read them. */
typedef struct CiProcHead {
    const char *kernel; /* name of the kernel; NULL: that of the proc */
    bool is_tree;       /* its statements are a tree of loops, checks and branches */
    CiTemplate kind;    /* template whose builder replaces its loops */
    CiPointAxis *axes;  /* outermost first */
    int naxes;
    bool has_lanes;            /* the last of them runs in lanes */
    const CiExpr *row;         /* elements of a row: rows of at most short_row are lanes; NULL: none */
    int64_t short_row;
    const CiExpr *chunks, *chunk; /* number of chunks of its reduction or scan (NULL: one); elements of a
                                   chunk (NULL: chunks are subtrees) */
    bool is_chained;            /* a chunk starts from the prefix that the one before publishes */
    bool totals_first;          /* of a chain: each chunk computes its total before it waits */
    const CiExpr *unit_work;    /* approximate number of elements that a unit accesses; NULL: unknown */
    const CiLoc *locs;
    int nlocs;
} CiProcHead;

typedef struct CiProc {
    const char *name;
    CiProcHead head;
    bool is_finish;    /* it runs after all units of the kernel's other proc */
    CiMemory **params; /* the kernel's buffers, in order; then scalar inputs */
    int nparams, capparams;
    const CiExpr **sizes; /* the kernel's size_args */
    int nsizes, capsizes;
    const CiExpr **facts; /* expressions that are at least 0 */
    int nfacts, capfacts;
    CiStmts body;
    CiType *types; /* of values, by number */
    int nvalues, capvalues;
    int nnames; /* number of names that passes have generated */
    int npointers; /* the largest number of a pointer */
    int64_t shared_bytes; /* shared memory that its GPU text declares, without `rows`; set by the printer */
} CiProc;

typedef struct CiProcs {
    CiContext *ctx;
    CiSym *sym;
    const char *name;
    CiProc **procs;
    int nprocs, capprocs;
} CiProcs;

extern const char *const ci_run_mode_names[CI_RUN_COUNT], *const ci_intrinsic_names[CI_INTRINSIC_COUNT], *const ci_stmt_names[CI_STMT_COUNT];
static inline CiType
ci_type_of(CiDtype dtype, int lanes)
{
    return (CiType){.dtype = dtype, .lanes = lanes};
}
int ci_fold_width(CiOp fold); /* accumulators of one reduction */
/* True for a let whose op is a scan. */
bool ci_stmt_is_running(const CiStmt *stmt);
/* The number of blocks in the statement: 0, 1 (a body), or 2 (a body and an else block). */
int ci_stmt_blocks(const CiStmt *stmt);

/* ---- operands: proc_stmt.c ---- */

/* Calls visit for each index expression of the statement: of its loops, accesses and tests, but not
 * for the symbol that a bind makes. The visitor may replace it. */
typedef void CiVisitExpr(void *arg, const CiExpr **e);
void ci_stmt_each_expr(const CiStmt *stmt, CiVisitExpr *visit, void *arg);
/* How a statement uses memory. updates: it loads, and stores a value that depends on the load. allocs: declares it. */
typedef enum CiTouch {
    CI_TOUCH_names,
    CI_TOUCH_loads,
    CI_TOUCH_stores,
    CI_TOUCH_updates,
    CI_TOUCH_allocs
} CiTouch;
static inline bool
ci_touch_loads(CiTouch touch)
{
    return touch == CI_TOUCH_loads || touch == CI_TOUCH_updates;
}
static inline bool
ci_touch_stores(CiTouch touch)
{
    return touch == CI_TOUCH_stores || touch == CI_TOUCH_updates;
}
/* Calls visit for each memory of the statement. The visitor may replace it. */
typedef void CiVisitMemory(void *arg, CiMemory **memory, CiTouch touch);
void ci_stmt_each_memory(const CiStmt *stmt, CiVisitMemory *visit, void *arg);
/* How the statements, and those nested in them, use a memory. */
typedef struct CiTouched {
    const CiMemory *memory;
    bool is_loaded, is_stored;
} CiTouched;
CiTouched ci_stmts_touch(const CiStmts *stmts, const CiMemory *memory);
/* Appends a copy with operands of its own and empty blocks. */
CiStmt *ci_build_copy(CiBuild *b, const CiStmt *stmt);
/* Calls visit for a statement (of a list: for each) and the statements nested in it, outer ones first. */
void ci_stmt_visit(const CiStmt *stmt, void (*visit)(void *arg, const CiStmt *stmt), void *arg);
void ci_stmts_visit(const CiStmts *stmts, void (*visit)(void *arg, const CiStmt *stmt), void *arg);
/* True if `is` holds for a statement, at any depth. */
bool ci_stmts_have(const CiStmts *stmts, bool (*is)(const CiStmt *stmt));
bool ci_stmt_is_loop(const CiStmt *stmt);
bool ci_stmt_is_math(const CiStmt *stmt);
/* True for a reduction whose combine step is expensive. */
bool ci_stmt_is_costly_reduce(const CiStmt *reduction);
/* True if warps combine by halving, not sequentially: a step is expensive, or there are many warps. */
bool ci_stmt_reduces_by_halves(const CiStmt *reduction);
/* True for straight-line code: a let, the allocation of registers, or a store that does not combine and needs no order. */
bool ci_stmt_is_straight(const CiStmt *stmt);
/* True for a let that a ufunc loop of NumPy computes. */
bool ci_stmt_is_ufunc(const CiStmt *stmt);
/* proc_lane_loops.c. True for a statement with lanes, which may begin a loop over lanes. */
bool ci_stmt_is_in_lanes(const CiProc *proc, const CiStmt *stmt);
/* True for a let that takes one half of the lanes of a value. */
bool ci_stmt_is_half(const CiStmt *stmt);
/* The symbols that have a value in each lane: symbol -> its bind. */
CiMap *ci_proc_lane_symbols(CiContext *ctx, const CiProc *proc);
bool ci_expr_has_lanes(const CiMap *lane_symbols, const CiExpr *e);
/* True if the lanes of the access are contiguous, and its index is a multiple of their number. */
bool ci_stmt_may_be_aligned(CiSym *sym, const CiProc *proc, const CiMap *lane_symbols, const CiStmt *stmt);
/* True if the loop over lanes that begins at `first` may execute a later statement. */
bool ci_lane_loop_takes(const CiProc *proc, const CiStmt *first, const CiStmt *stmt);
/* Two aligned loads. The lanes of an unaligned load are their concatenated lanes from `distance` on. */
typedef struct CiShift {
    const CiStmt *early, *late; /* NULL: there are none */
    int distance;
} CiShift;
/* first: the beginning of the loop over lanes that has the load. */
CiShift ci_lane_loop_shift(CiSym *sym, const CiMap *lane_symbols, const CiStmt *first, const CiStmt *load);
/* proc_masks.c. Bytes per lane of the mask that the let's vector instruction produces; 0: it produces no mask. */
int ci_stmt_mask(const CiProc *proc, const CiStmt *let);
/* Bytes per lane of the operands that are compared. For bools, that of the widest mask. */
int ci_stmt_operand_bytes(const CiProc *proc, const CiStmt *let);
/* True for memory of bools in lanes, except scratch memory: its size is counted in bytes, one per bool. */
bool ci_memory_may_have_masks(const CiMemory *memory);
/* True for a let that only moves lanes of memory or of its operand. */
bool ci_stmt_moves_masks(const CiStmt *let);
/* proc_pointers.c. The element that the pointer of an access points to. */
typedef struct CiPointer {
    const CiMemory *memory; /* NULL: the access has no pointer */
    const CiExpr *start;
    bool is_ahead; /* of a prefetch */
} CiPointer;
typedef struct CiPointerRule {
    CiSym *sym;
    const CiProc *proc;
    CiMap *lane_symbols, *swapped;
} CiPointerRule;
CiPointerRule ci_pointer_rule(CiContext *ctx, CiSym *sym, const CiProc *proc);
CiPointer ci_stmt_pointer(const CiPointerRule *rule, const CiStmt *stmt);
bool ci_pointer_is_same(CiPointer a, CiPointer b);
/* The index of the element that the access's pointer points to; *offset is the distance of the accessed element from it. */
const CiExpr *ci_pointer_start(CiSym *sym, const CiExpr *index, int64_t *offset);
/* Adds to uses[value] the number of operands and tests that use it. */
void ci_stmts_count_uses(const CiStmts *stmts, int *uses);

/* ---- launches: proc_launch.c ---- */

typedef enum CiLaunchNumber {
#define LAUNCH(name) CI_LAUNCH_##name,
#include "ir/proc.def"
    CI_LAUNCH_COUNT
} CiLaunchNumber;

/* The launch parameters of a kernel, as expressions of its sizes; NULL: not needed. */
typedef struct CiLaunchExprs {
    const CiExpr *of[CI_LAUNCH_COUNT];
} CiLaunchExprs;

extern const char *const ci_launch_names[CI_LAUNCH_COUNT];
/* Computes them from the procs of the kernel. */
CiLaunchExprs ci_procs_launch(const CiProcs *procs, const char *kernel);
/* Prints or parses them: `units 8*s0; scratch_bytes 64;`. */
void ci_launch_io(CiTextIo *f, CiLaunchExprs *launch);
/* The first loop with that run mode, at any depth; NULL if there is none. */
const CiStmt *ci_stmts_find_loop(const CiStmts *block, CiRunMode run);

/* ---- building ---- */

/* The builder: new statements are appended to the block `to`. */
struct CiBuild {
    CiContext *ctx;
    CiSym *sym;
    CiProc *proc;
    CiStmts *to;
    CiLoc loc;
    CiProcs *procs;
    const CiMachine *machine; /* the machine whose thresholds apply */
};

/* A builder that appends to the body of the proc. */
CiBuild ci_build_of(CiProcs *procs, CiProc *proc, const CiMachine *machine);
CiProcs *ci_procs_new(CiContext *ctx, CiSym *sym, const char *name);
CiProc *ci_procs_add(CiProcs *procs, const char *name);
/* The proc of a kernel, or its finishing proc; NULL if there is none. */
const CiProc *ci_procs_find(const CiProcs *procs, const char *kernel, bool is_finish);
CiMemory *ci_proc_add_param(CiContext *ctx, CiProc *proc, CiMemory memory);
CiStmt *ci_build_add(CiBuild *b, CiStmtKind kind);
void ci_build_move(CiBuild *b, CiStmt *stmt); /* appends a statement that is in no block */
void ci_build_move_all(CiBuild *b, const CiStmts *from);
/* Empties the block and calls `rewrite` for each of its statements, which moves it back or builds its replacement. */
void ci_build_rewrite(CiBuild *b, CiStmts *block, void (*rewrite)(void *arg, CiStmt *stmt),
                      void *arg);
/* ci_build_enter makes a body the current block and returns the block before, which ci_build_leave restores. */
CiStmts *ci_build_enter(CiBuild *b, CiStmts *into);
void ci_build_leave(CiBuild *b, CiStmts *outside);
/* A new name in the proc: stem and a number. */
const char *ci_build_name(CiBuild *b, const char *stem);
CiMemory *ci_build_alloc(CiBuild *b, const char *name, CiDtype dtype, int lanes, CiSpace space,
                         const CiExpr *size);
/* A loop with a fresh variable, its body not yet entered. */
CiStmt *ci_build_for(CiBuild *b, const char *stem, const CiExpr *extent, CiRunMode run);
CiStmt *ci_build_loop(CiBuild *b, const CiExpr *var, const CiExpr *extent, CiRunMode run);
/* A fold of one reduction over a variable, its body not yet entered. */
CiStmt *ci_build_fold(CiBuild *b, const CiExpr *var, const CiExpr *extent, CiOp op, CiMemory *into);
/* if, exit, stop with one test. */
CiStmt *ci_build_test(CiBuild *b, CiStmtKind kind, CiCompare compare, const CiExpr *left,
                      const CiExpr *right);
/* Adds a test to the statement's conjunction. */
void ci_build_and(CiBuild *b, CiStmt *stmt, CiCompare compare, const CiExpr *left,
                  const CiExpr *right);
CiStmt *ci_build_compare(CiBuild *b, CiStmtKind kind, CiCompare is, int value);
/* Each appends a let and returns the number of its value. */
int ci_build_let(CiBuild *b, CiType type, CiOp op, int nargs, const int *args);
int ci_build_const(CiBuild *b, CiType type, CiConst constant);
int ci_build_index(CiBuild *b, const CiExpr *e);
const CiExpr *ci_build_bind(CiBuild *b, int value, const CiExpr *extent); /* a fresh symbol */
/* A new symbol bound to the value of an expression that is at least 0. */
const CiExpr *ci_build_named(CiBuild *b, const CiExpr *e);
int ci_build_load(CiBuild *b, CiMemory *memory, const CiExpr *index, int lanes);
void ci_build_store(CiBuild *b, CiMemory *memory, const CiExpr *index, int value);
void ci_build_yield(CiBuild *b, const int *values, int count);

/* ---- text and checks ---- */

void ci_procs_print(CiText *out, const CiProcs *procs);
CiProcs *ci_procs_parse(CiContext *ctx, const char *text);
/* Fails through the procs' context. Returns the number of accesses that are not proved to be in bounds. */
int ci_procs_verify(const CiProcs *procs);
void ci_procs_verify_text(const CiProcs *procs); /* fails unless the printed text, parsed and printed again, is the same */

#endif
