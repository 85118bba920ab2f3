/* Procs as C: statements, values in lanes as vectors of the compilers' own kind (GCC and Clang have
 * the same), and the helpers that these call.
 *
 * A number in lanes is a vector of its type; a half one of floats, as it is computed; a complex
 * number a pair of vectors. A bool is a mask, -1 where it is true, as wide as what was compared;
 * one that comes from memory, or goes there, is a byte of 0 or 1. In lanes that are not live a
 * value is that of a live one: what is computed from it raises no flag of its own. */
#ifndef CI_TARGET_C_C_H
#define CI_TARGET_C_C_H

#include "base/map.h"
#include "ir/proc.h"
#include "target/c/instructions.h"

typedef struct CiCPrinter CiCPrinter;

/* The differences between C-like languages. */
typedef struct CiCDialect {
    /* NULL: as C has it; else the last one of those that are printed, neighbours from stmt on. */
    const CiStmt *(*statement)(CiCPrinter *p, const CiStmt *stmt);
    void (*let)(CiCPrinter *p, const CiStmt *let); /* in lanes */
    void (*store)(CiCPrinter *p, const CiStmt *store);
    const char *(*math)(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes);
    const char *(*argument)(CiCPrinter *p, const CiMemory *memory);
    void (*alloc)(CiCPrinter *p, const CiMemory *memory);
    /* A store that combines, where several threads may be at one element. */
    void (*atomic)(CiCPrinter *p, const CiStmt *store);
    /* The element of a load, and of a store that does not combine, that others touch now. */
    const char *(*load_now)(CiCPrinter *p, const char *element);
    const char *(*store_now)(CiCPrinter *p, const char *element, const char *value);
    /* A compress has a single writer: a rejected element may be stored too, because the next one
     * overwrites it. */
    bool packs_alone;
    const char *global; /* before a pointer's type, for memory of the device; "" in C */
    /* Where a buffer, by number, lies for the world outside. */
    const char *(*own_memory)(CiCPrinter *p, int number);
    /* Of memory that each thread of a block has an element of; NULL: there is none. */
    const char *(*thread_element)(CiCPrinter *p, const CiMemory *memory, const CiExpr *index);
} CiCDialect;

struct CiCPrinter {
    const CiCDialect *dialect;
    const char *index_type; /* of loops and bound symbols */
    CiEmitter *base;
    CiContext *ctx;
    CiSym *sym;
    const CiCInstructions *instructions;
    int vector_bytes; /* of one register */
    bool has_routines; /* libmvec has the machine's vector routines */
    CiText helpers;   /* types and functions used so far, callees first */
    CiMap *known;     /* their names, interned */
    /* of the proc being printed */
    const CiProc *proc;
    CiText *out;
    bool has_loops_left;    /* that the compiler is to make vectors of */
    const CiStmt **defined; /* per value: its statement */
    int *uses;              /* per value: how often it is an operand */
    const int *swap_groups; /* per parameter: the first of those that may have each other's memory,
                               -1 if it keeps its own; NULL: all do */
    const char *moves_from; /* of elements that are moved back, this one's; NULL: all are */
    int moves_step;
    CiMap *lane_symbols; /* bound in lanes: symbol -> its bind */
    int *pointers, npointers, cappointers; /* that are declared here, and by number: */
    bool *has_pointer;
};

CiCPrinter *ci_c_printer_new(CiContext *ctx, const CiCInstructions *instructions, int vector_bytes);
void ci_c_printer_open(CiCPrinter *p, CiContext *ctx, const CiCInstructions *instructions, int vector_bytes);

/* NULL when an operation in lanes is vector instructions, else the reason. */
const char *ci_c_why_not_vector(CiContext *ctx, CiOp op, CiDtype operand, CiDtype result);
/* The routine of libmvec for one full vector of f32 or f64: "_ZGVeN16v_expf". */
void ci_c_math_symbol(const CiCInstructions *instructions, CiOp op, CiDtype dtype, int vector_bytes,
                      char out[40]);

/* types.c: names of types, declared at their first use. */
const char *ci_c_type(CiCPrinter *p, CiDtype dtype, int lanes);
CiDtype ci_c_mask_dtype(int bytes);
const char *ci_c_mask_type(CiCPrinter *p, int bytes, int lanes);
/* Notes a helper; true where it is new, and then its text must follow. */
bool ci_c_needs(CiCPrinter *p, const char *name);
bool ci_c_has(const CiCPrinter *p, const char *name);
/* The words before a helper whose calls are inlined, or rare. */
const char *ci_c_inline(CiCPrinter *p);
const char *ci_c_cold(CiCPrinter *p);

/* vector_text.c: expressions over named operands of one type. A bool's operands are masks. */
const char *ci_c_pointwise(CiCPrinter *p, CiOp op, CiDtype operand, int lanes,
                           const char *const *names);
/* conversions.c: a float before and after it is truncated to an int, hidden from the optimizer (CUT in
 * quirks.def). Other casts are unchanged. */
const char *ci_c_before_cut(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value);
const char *ci_c_cut_int(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value);
/* print.c: a cast of one element, hidden as above. */
const char *ci_c_cast(CiCPrinter *p, CiDtype from, CiDtype to, const char *value);
/* helpers.c: names of functions; a choice as an expression. */
const char *ci_c_where(CiCPrinter *p, CiDtype dtype, int lanes, const char *mask, const char *yes,
                       const char *no);
/* NULL where no instruction is named; plain: the expression over a and b. */
const char *ci_c_extreme(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes, const char *plain);
/* a*b + c in each lane, rounded once: a function of the three. */
const char *ci_c_fused(CiCPrinter *p, CiDtype dtype, int lanes);
const char *ci_c_rounding(CiCPrinter *p, const char *name, CiDtype dtype, int lanes);
const char *ci_c_math(CiCPrinter *p, CiOp op, CiDtype dtype, int lanes);
const char *ci_c_load_part(CiCPrinter *p, CiDtype dtype, int lanes, const char *place,
                           const CiExpr *live);
/* NULL where lanes are moved one by one. Of memory, a stride, (a vector,) and how many where
 * is_part. */
const char *ci_c_strided(CiCPrinter *p, CiDtype dtype, int lanes, bool is_part, bool is_store);
bool ci_c_has_pack(CiDtype dtype);
/* The name of a function that compresses a vector, or NULL if lanes are compressed one by one. Its
 * arguments: memory, a vector, a mask, the number of live lanes, and the capacity. */
const char *ci_c_pack(CiCPrinter *p, CiDtype dtype, int lanes);
/* A function of n: a mask with so many bytes per lane, true in lanes below n. */
const char *ci_c_first_lanes(CiCPrinter *p, int bytes, int lanes);
/* Shifts each lane by its own number of bits; NULL: the operator does. */
const char *ci_c_lane_shift(CiCPrinter *p, const char *sign, CiDtype dtype, int lanes);
const char *ci_c_find_lane(CiCPrinter *p, int bytes, int lanes); /* the first one of a mask that is true */
const char *ci_c_store_part(CiCPrinter *p, CiDtype dtype, int lanes, const char *place,
                            const char *value, const CiExpr *live);

/* conversions.c: a value of another number type. */
const char *ci_c_convert(CiCPrinter *p, CiDtype from, CiDtype to, int lanes, const char *value);
const char *ci_c_splat(CiCPrinter *p, CiDtype dtype, int lanes);

/* narrow.c: a vector of a narrow float, which is one of floats; of another dtype the value itself. The
 * value rounded, and converted from and to elements of memory, which are uint16. */
const char *ci_c_rounded(CiCPrinter *p, CiDtype dtype, int lanes, const char *value);
const char *ci_c_widened(CiCPrinter *p, CiDtype dtype, int lanes, const char *value);
const char *ci_c_narrowed(CiCPrinter *p, CiDtype dtype, int lanes, const char *value);

/* place.c. Declares the pointer of an access, unless a block around it has; at the end of a block, its pointers end. */
void ci_c_declare_pointer(CiCPrinter *p, const CiStmt *stmt);
void ci_c_leave_pointers(CiCPrinter *p, int outside);
/* A pointer to the element that the statement accesses; of a prefetch, which may be out of bounds, a number. */
const char *ci_c_pointer(CiCPrinter *p, const CiStmt *stmt);
/* The pointer to memory; an element of it as an lvalue. */
const char *ci_c_memory(CiCPrinter *p, const CiMemory *memory);
const char *ci_c_element(CiCPrinter *p, const CiMemory *memory, const CiExpr *index);
const char *ci_c_load(CiCPrinter *p, const CiMemory *memory, const CiExpr *index);
void ci_c_print_store(CiCPrinter *p, const CiMemory *memory, const CiExpr *index,
                      const char *value);
void ci_c_print_alloc(CiCPrinter *p, const CiMemory *memory);

static inline const char *
ci_c_name(CiCPrinter *p, int value)
{
    return ci_format(p->ctx, "v%d", value);
}

/* True if the expression has a different value in each lane. */
static inline bool
ci_c_has_lanes(const CiCPrinter *p, const CiExpr *e)
{
    return ci_expr_has_lanes(p->lane_symbols, e);
}

static inline CiType
ci_c_type_of(const CiCPrinter *p, int value)
{
    return p->proc->types[value];
}

static inline int
ci_c_width(CiDtype dtype)
{
    return (int)ci_dtype_size(ci_dtype_compute(dtype));
}

/* masks.c. A bool as a mask of so many bytes a lane; as bytes that are 0 or 1. */
const char *ci_c_as_mask(CiCPrinter *p, int value, int bytes);
const char *ci_c_as_bytes(CiCPrinter *p, int value);
const char *ci_c_first_true(CiCPrinter *p, int value);
/* A mask with lanes of so many bytes, as bytes that are 0 or 1. */
const char *ci_c_bytes_of_mask(CiCPrinter *p, int bytes, int lanes, const char *mask);

/* lanes.c: a let, a store in lanes. */
void ci_c_print_vector_let(CiCPrinter *p, const CiStmt *let);
void ci_c_print_vector_pack(CiCPrinter *p, const CiStmt *call);
void ci_c_print_vector_store(CiCPrinter *p, const CiStmt *store);

/* swap.c */
const int *ci_c_swap_groups(CiContext *ctx, const CiProc *proc);
void ci_c_print_swap(CiCPrinter *p, const CiStmt *swap);
void ci_c_print_moved_back(CiCPrinter *p);

/* print.c. Statements; a condition of all tests of one. */
void ci_c_begin_proc(CiCPrinter *p, const CiProc *proc, CiText *body);
void ci_c_print_block(CiCPrinter *p, const CiStmts *block);
void ci_c_print_let(CiCPrinter *p, const CiStmt *let);
void ci_c_print_stored(CiCPrinter *p, const CiStmt *store);
const char *ci_c_conditions(CiCPrinter *p, const CiStmt *stmt);
/* A let of one lane, of named operands. */
const char *ci_c_operation(CiCPrinter *p, const CiStmt *let, const char *const *names);

/* function.c: a proc as a function of CiKernelFunction's type; p->helpers has what it calls. */
void ci_c_print_proc(CiCPrinter *p, CiText *out, const CiProc *proc);

#endif
