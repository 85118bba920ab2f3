/* The statement level: what one kernel does, statement by statement.
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
 * The head of a proc, after its parameters, says what passes have still to do (CiProcHead).
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
 * gone. Values are defined once, named by number and seen from there to the end of their block; a
 * value of several lanes is a vector (`f32x16`, `boolx16`).
 *
 * Index expressions name sizes, loop variables and bound symbols: `%3: i64 = bind %2 [at0<n]` makes
 * at0 the value of %2, which is in [0, n). Where %2 has lanes at0 has a value in each, and so has
 * an index that names it: an access at such an index is a gather or a scatter.
 *
 * An access is one shape: lane l of `load m[i] stride [s] live [n] else 0` is element i + l*s of m
 * where l < n, and a bound symbol in i has its value in lane l. In other lanes nothing is touched,
 * and a load is what `else` says. The default stride is 1, and all lanes are live by default; a
 * gather and a scatter have no default stride. n may be negative: then no lane is live. The lanes
 * of one store come in order: with an operation (`store add m[i] = %1`) each is combined with what
 * those before it have left. Of several `store m[i] = %1 in order` at one element the last
 * is left.
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
 * `apply numpy_exp y[0] of x[i] for [n]` calls the loop of a ufunc for n elements, and is what
 * becomes of a let with such an operation; stride [0] is one element for all of them.
 *
 * `copy m[i] of x[j] for [8]` is an asynchronous copy of neighbours to shared memory, which has zeros where an element is
 * not live. `commit` ends a batch of the block's copies. `synchronize 2` is a barrier after all batches but the last two
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
 * `prefetch m[i]` asks for an element that will be read soon, and may lie beyond its memory.
 *
 * `loop` repeats until an `exit`, which leaves the innermost loop of any kind. `stop 3` ends the
 * kernel with fault number 3. `poll [n]` counts n units of work, and after many of them ends the
 * kernel if it has been cancelled. `%5: f64 = cumsum %4 in acc from [j0]` is a scan: acc has the
 * result so far, lanes come in order, and the lane at position 0 starts. `fold` and `yield` exist
 * until the pass `reduce`. A fold has one or more reductions, each into its accumulators (argmax:
 * the value and its position; welford: count, mean, sum of squares). The yield at the end of its
 * body gives their operands, in order. `from [f] for [n]` restricts the fold to a range of its
 * points, in C order; `of blocks [n]` states that each operand is the sum of a block, n of them
 * whole.
 *
 * Units of a parallel loop start in order, so a unit may wait for the one before it. `wait [c0]`
 * waits until that one has published. `publish [c0]` follows the stores to partials from which the
 * next unit starts. `%6: bool = turn [c0]` is true if a unit that starts for the first time need
 * not wait. A long wait may end the unit; it is restarted when the unit before it has published,
 * and finds what it has stored to its own elements of partials. Such parts are a chained scan:
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
/* Work between two questions whether to go on. */
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
    int mask; /* of a bool in lanes: bytes of a lane, all of whose bits are set where it is true; 0: a byte, 0 or 1 */
} CiType;

typedef struct CiMemory {
    const char *name;
    CiDtype dtype;
    int lanes; /* of an element: register and stack memory may hold vectors */
    int mask;  /* of an element: as in CiType */
    CiSpace space;
    const CiExpr *size;   /* elements from the first one on: those are [first, size) */
    const CiExpr *first;  /* NULL: 0; less where strides of a buffer are negative */
    const CiExpr *offset; /* scratch, partials: bytes from where they begin; else NULL */
    bool is_const;
    const CiBuffer *buffer; /* what it was at the level of kernels, or NULL */
} CiMemory;

typedef struct CiAccess {
    CiMemory *memory;
    const CiExpr *index, *stride; /* NULL: 1 */
    bool is_aligned;   /* its lanes move at once; set by lane_loops */
    bool is_shifted;   /* two aligned loads of its loop over lanes have its lanes; set by lane_loops */
    int pointer;       /* the number of the one that it shares, from 1 on; 0: none; set by pointers */
    CiConst otherwise; /* what a load is in lanes that are not live; 0 if nothing is said */
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
    CiLoc loc;           /* of the user's line it came from, or none */
    CiStmts body, other; /* for, loop, fold, if; other: the else branch */
    bool in_lane_loop;   /* the loop over lanes of the statement before executes it; set by lane_loops */
    /* for; fold: walked in C order */
    const CiExpr **vars, **extents;
    int nvars;
    CiRunMode run;
    const CiExpr *runs; /* of a parallel loop: a symbol, the number of iterations that the body runs
                           at once; the variable is the first of them. NULL: one */
    /* let, call: the value made, or -1; operands are values; store, yield: operands alone */
    int value;
    CiType type;
    CiOp op;          /* of a store: what combines, or CI_OP_none */
    bool is_in_order; /* a store: several may be at one element, which the last one has; for: an
                         iteration may read what those before it have stored */
    bool is_atomic;   /* several may be at one element at once: it combines, or stores what all do; or it
                         loads what others may store now */
    int *args;
    int nargs;
    const CiExpr *expr; /* index, iota: the expression; bind: the symbol; running: the position;
                           poll: turns; apply: how many elements */
    CiConst constant;   /* const */
    const CiExpr *live; /* lanes in use, a prefix; NULL: all. Others of the value mean nothing */
    CiAccess at;        /* load, store, call; apply: its results, side by side */
    CiAccess in[2];     /* apply, multiply: the operands; copy: the source */
    int nin;
    CiMemory *cell;        /* running forms and calls: what is carried from lane to lane */
    const CiExpr *limit;   /* pack, bind: the cell or the symbol is below; NULL: no end */
    CiIntrinsic intrinsic; /* call */
    CiMemory *memory;      /* alloc; swap */
    CiMemory *partner;     /* swap: they exchange what they hold */
    CiCondition *tests;    /* if, exit, stop: all of them hold; none: always */
    int ntests;
    int number; /* stop: of the check among the kernel's; grid: neighbours that share a block of the
                   GPU without waiting for each other; reduce: distance of the threads; 0: one;
                   multiply: 1, 2: chunks of the left, the right factor are along rows, columns;
                   4: it ends here; 8: it sets the sums; 16: it rounds them; near: threads of a group; synchronize: batches that need not have arrived */
    /* fold */
    CiFoldOrder order;
    CiOp *ops;
    CiMemory **into; /* ci_fold_width of each operation */
    int nops, ninto;
    const CiExpr *from, *count; /* of its points, in C order, these alone; NULL: all */
    const CiExpr *blocks;       /* what is yielded are whole blocks of a fold in lanes or rows, as
                                   many as this says, and perhaps what is less than one; NULL: no */
};

/* An outer axis of a kernel. */
typedef struct CiPointAxis {
    const char *var; /* of its loop */
    int tile;        /* iterations of one tile, or 0 */
} CiPointAxis;

/* The part of a kernel that the statements of its proc do not contain. Passes read it. */
typedef struct CiProcHead {
    const char *kernel; /* the name of what it was made of; NULL: its own */
    bool is_tree;       /* its statements are a tree of loops, checks and branches */
    CiTemplate kind;    /* whose builder replaces its loops */
    CiPointAxis *axes;  /* outermost first */
    int naxes;
    bool has_lanes;            /* the last of them runs in lanes */
    const CiExpr *row;         /* elements of a row: rows of at most short_row are lanes; NULL: none */
    int64_t short_row;
    const CiExpr *chunks, *chunk; /* chunks of its reduction or scan, NULL: one; elements of each, NULL:
                                   they are subtrees */
    bool is_chained;            /* a chunk starts from the prefix that the one before publishes */
    bool totals_first;          /* of a chain: each chunk computes its total before it waits */
    const CiExpr *unit_work;    /* elements that a unit accesses, about; NULL: not known */
    const CiLoc *locs;
    int nlocs;
} CiProcHead;

typedef struct CiProc {
    const char *name;
    CiProcHead head;
    bool is_finish;    /* it runs when all units of another proc of the kernel have */
    CiMemory **params; /* as the kernel's buffers, in order; then scalar inputs */
    int nparams, capparams;
    const CiExpr **sizes; /* as the kernel's size_args */
    int nsizes, capsizes;
    const CiExpr **facts; /* each at least 0 */
    int nfacts, capfacts;
    CiStmts body;
    CiType *types; /* of values, by number */
    int nvalues, capvalues;
    int nnames; /* that passes have asked for */
    int npointers; /* the largest number of a pointer */
    int64_t shared_bytes; /* of the block's memory that its text for a GPU declares, besides rows; set when printed */
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
/* A let whose op is a scan. */
bool ci_stmt_is_running(const CiStmt *stmt);
/* 0; 1: a body; 2: another block too, after `else`. */
int ci_stmt_blocks(const CiStmt *stmt);

/* ---- operands: proc_stmt.c ---- */

/* Calls visit for each index expression of the statement: of its loops, accesses and tests, but not
 * for the symbol that a bind makes. The visitor may replace it. */
typedef void CiVisitExpr(void *arg, const CiExpr **e);
void ci_stmt_each_expr(const CiStmt *stmt, CiVisitExpr *visit, void *arg);
/* The access of a statement to memory. updates: loads, and stores what depends on it. allocs: declares it. */
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
/* How the statements, and those inside of them, touch a memory. */
typedef struct CiTouched {
    const CiMemory *memory;
    bool is_loaded, is_stored;
} CiTouched;
CiTouched ci_stmts_touch(const CiStmts *stmts, const CiMemory *memory);
/* Appends a copy with operands of its own and empty blocks. */
CiStmt *ci_build_copy(CiBuild *b, const CiStmt *stmt);
/* Calls visit for each statement, outer ones first; for one and those inside of it. */
void ci_stmt_visit(const CiStmt *stmt, void (*visit)(void *arg, const CiStmt *stmt), void *arg);
void ci_stmts_visit(const CiStmts *stmts, void (*visit)(void *arg, const CiStmt *stmt), void *arg);
/* Is there such a statement, at whatever depth? */
bool ci_stmts_have(const CiStmts *stmts, bool (*is)(const CiStmt *stmt));
bool ci_stmt_is_loop(const CiStmt *stmt);
bool ci_stmt_is_math(const CiStmt *stmt);
/* True for a reduction whose combine step is expensive. */
bool ci_stmt_is_costly_reduce(const CiStmt *reduction);
/* Warps combine by halves too, instead of in sequence: if a step is expensive, or there are many. */
bool ci_stmt_reduces_by_halves(const CiStmt *reduction);
/* A value, a register, or a store that combines nothing and needs no order. */
bool ci_stmt_is_straight(const CiStmt *stmt);
/* A let that a loop of NumPy's computes. */
bool ci_stmt_is_ufunc(const CiStmt *stmt);
/* proc_lane_loops.c. A statement with lanes, which may begin a loop over them. */
bool ci_stmt_is_in_lanes(const CiProc *proc, const CiStmt *stmt);
/* One half of the lanes of a value. */
bool ci_stmt_is_half(const CiStmt *stmt);
/* The symbols that have a value in each lane: symbol -> its bind. */
CiMap *ci_proc_lane_symbols(CiContext *ctx, const CiProc *proc);
bool ci_expr_has_lanes(const CiMap *lane_symbols, const CiExpr *e);
/* True if the lanes of the access are contiguous, and its index is a multiple of their number. */
bool ci_stmt_may_be_aligned(CiSym *sym, const CiProc *proc, const CiMap *lane_symbols, const CiStmt *stmt);
/* True if the loop over lanes that begins at `first` may execute a later statement. */
bool ci_lane_loop_takes(const CiProc *proc, const CiStmt *first, const CiStmt *stmt);
/* Two aligned loads whose lanes, one after another, have those of a load from `distance` on. */
typedef struct CiShift {
    const CiStmt *early, *late; /* NULL: there are none */
    int distance;
} CiShift;
/* first: the beginning of the loop over lanes that has the load. */
CiShift ci_lane_loop_shift(CiSym *sym, const CiMap *lane_symbols, const CiStmt *first, const CiStmt *load);
/* proc_masks.c. Bytes of a lane of the mask that vector instructions make of the operands; 0: none. */
int ci_stmt_mask(const CiProc *proc, const CiStmt *let);
/* Bytes of a lane of the operands as they are compared: of bools, those of the widest mask. */
int ci_stmt_operand_bytes(const CiProc *proc, const CiStmt *let);
/* True for memory of bools in lanes, except scratch memory: there they are bytes, of which its size is counted. */
bool ci_memory_may_have_masks(const CiMemory *memory);
/* A let whose lanes are those of memory or of its operand. */
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
/* The index of the element that a pointer of the access points to, and how far the accessed one is from it. */
const CiExpr *ci_pointer_start(CiSym *sym, const CiExpr *index, int64_t *offset);
/* Adds to each value's count how often it is an operand or tested. */
void ci_stmts_count_uses(const CiStmts *stmts, int *uses);

/* ---- launches: proc_launch.c ---- */

typedef enum CiLaunchNumber {
#define LAUNCH(name) CI_LAUNCH_##name,
#include "ir/proc.def"
    CI_LAUNCH_COUNT
} CiLaunchNumber;

/* The numbers of a kernel's launch, over its sizes; NULL: it has none. */
typedef struct CiLaunchExprs {
    const CiExpr *of[CI_LAUNCH_COUNT];
} CiLaunchExprs;

extern const char *const ci_launch_names[CI_LAUNCH_COUNT];
/* Reads them off the procs of the kernel. */
CiLaunchExprs ci_procs_launch(const CiProcs *procs, const char *kernel);
/* Their text: `units 8*s0; scratch_bytes 64;`. */
void ci_launch_io(CiTextIo *f, CiLaunchExprs *launch);
/* The first loop of the kind, at whatever depth; NULL: there is none. */
const CiStmt *ci_stmts_find_loop(const CiStmts *block, CiRunMode run);

/* ---- building ---- */

/* Where statements go now. */
struct CiBuild {
    CiContext *ctx;
    CiSym *sym;
    CiProc *proc;
    CiStmts *to;
    CiLoc loc;
    CiProcs *procs;
    const CiMachine *machine; /* whose thresholds decide */
};

/* Statements go to the end of the proc. */
CiBuild ci_build_of(CiProcs *procs, CiProc *proc, const CiMachine *machine);
CiProcs *ci_procs_new(CiContext *ctx, CiSym *sym, const char *name);
CiProc *ci_procs_add(CiProcs *procs, const char *name);
/* The proc of a kernel, or the one that finishes it; NULL: there is none. */
const CiProc *ci_procs_find(const CiProcs *procs, const char *kernel, bool is_finish);
CiMemory *ci_proc_add_param(CiContext *ctx, CiProc *proc, CiMemory memory);
CiStmt *ci_build_add(CiBuild *b, CiStmtKind kind);
void ci_build_move(CiBuild *b, CiStmt *stmt); /* one that stands nowhere any more */
void ci_build_move_all(CiBuild *b, const CiStmts *from);
/* The block anew: `rewrite` moves each of its statements back, or builds what stands in its place.
 */
void ci_build_rewrite(CiBuild *b, CiStmts *block, void (*rewrite)(void *arg, CiStmt *stmt),
                      void *arg);
/* Into the body of a statement, and back to where it stands. */
CiStmts *ci_build_enter(CiBuild *b, CiStmts *into);
void ci_build_leave(CiBuild *b, CiStmts *outside);
/* A name that the proc does not have yet: stem and a number. */
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
/* One test more. */
void ci_build_and(CiBuild *b, CiStmt *stmt, CiCompare compare, const CiExpr *left,
                  const CiExpr *right);
CiStmt *ci_build_compare(CiBuild *b, CiStmtKind kind, CiCompare is, int value);
/* Lets, each the number of its value. */
int ci_build_let(CiBuild *b, CiType type, CiOp op, int nargs, const int *args);
int ci_build_const(CiBuild *b, CiType type, CiConst constant);
int ci_build_index(CiBuild *b, const CiExpr *e);
const CiExpr *ci_build_bind(CiBuild *b, int value, const CiExpr *extent); /* a fresh symbol */
/* A symbol that is what the expression is, at least 0. */
const CiExpr *ci_build_named(CiBuild *b, const CiExpr *e);
int ci_build_load(CiBuild *b, CiMemory *memory, const CiExpr *index, int lanes);
void ci_build_store(CiBuild *b, CiMemory *memory, const CiExpr *index, int value);
void ci_build_yield(CiBuild *b, const int *values, int count);

/* ---- text and checks ---- */

void ci_procs_print(CiText *out, const CiProcs *procs);
CiProcs *ci_procs_parse(CiContext *ctx, const char *text);
/* Fails through the procs' context; how many accesses are not proved to stay in their memory. */
int ci_procs_verify(const CiProcs *procs);
void ci_procs_verify_text(const CiProcs *procs); /* what is read back prints alike */

#endif
