/* Shared declarations of the files that verify procs. */
#ifndef CI_IR_PROC_PRIVATE_H
#define CI_IR_PROC_PRIVATE_H

#include "ir/text_common.h"
#include "ir/proc.h"

typedef struct CiProcSymbol {
    const CiExpr *symbol;
    int lanes; /* in which it has a value of its own; 1: it has one */
} CiProcSymbol;

/* The state of verification at a statement. At the end of a block its additions are removed. */
typedef struct CiProcVerifier {
    CiContext *ctx;
    CiSym *sym;
    const CiProc *proc;
    bool *is_alive, *is_defined; /* by value */
    int *values;                 /* alive ones, in order of definition */
    int nvalues, capvalues;
    const CiMemory **memories;
    int nmemories, capmemories;
    CiProcSymbol *symbols;
    int nsymbols, capsymbols;
    const CiExpr **facts; /* each at least 0 */
    int nfacts, capfacts;
    int nblocks, nloops, nunrolled; /* around the statement */
    int ngrids, nmeets;             /* loops of the kind around it: at most one of each */
    const CiExpr *thread;           /* the variable of a loop over threads around it, or NULL */
    int nshared;                    /* memories that are declared outside that loop */
    int nproofs, nunproved;
} CiProcVerifier;

/* The operands that texts in proc.def name: OPERAND(name, type, its member of CiStmt). symbol: that a
 * bind makes, with its bounds; reductions: operations, each with its accumulators; otherwise: what a
 * load is in lanes that are not live; flag: no text of its own. */
#define CI_STMT_OPERANDS(OPERAND)                                                                  \
    OPERAND(expr, expr, expr) OPERAND(live, expr, live) OPERAND(limit, expr, limit)                \
    OPERAND(from, expr, from) OPERAND(count, expr, count) OPERAND(blocks, expr, blocks)            \
    OPERAND(memory, memory, memory) OPERAND(partner, memory, partner) OPERAND(cell, memory, cell)  \
    OPERAND(is_in_order, flag, is_in_order) OPERAND(is_atomic, flag, is_atomic)                    \
    OPERAND(number, number, number) OPERAND(op, op, op) OPERAND(intrinsic, intrinsic, intrinsic)   \
    OPERAND(run, run, run) OPERAND(runs, runs, runs) OPERAND(loops, loops, vars)                   \
    OPERAND(args, args, args) OPERAND(at, at, at) OPERAND(in, in, in)                              \
    OPERAND(tests, tests, tests) OPERAND(constant, constant, constant)                             \
    OPERAND(otherwise, constant, at.otherwise) OPERAND(symbol, symbol, expr)                       \
    OPERAND(declaration, declaration, memory) OPERAND(reductions, reductions, ops)                 \
    OPERAND(order, order, order)

typedef enum CiOperandType {
    CI_OPERAND_expr, CI_OPERAND_memory, CI_OPERAND_flag, CI_OPERAND_number, CI_OPERAND_op,
    CI_OPERAND_intrinsic, CI_OPERAND_run, CI_OPERAND_runs, CI_OPERAND_loops, CI_OPERAND_args,
    CI_OPERAND_at, CI_OPERAND_in, CI_OPERAND_tests, CI_OPERAND_constant,
    CI_OPERAND_symbol, CI_OPERAND_declaration, CI_OPERAND_reductions, CI_OPERAND_order
} CiOperandType;

typedef struct CiOperand {
    const char *name;
    CiOperandType type;
    size_t offset; /* of the member */
} CiOperand;

/* The text of its operands. */
const char *ci_stmt_pattern(const CiStmt *stmt);
/* The operand whose name in braces begins the text. */
const CiOperand *ci_stmt_operand(const char *text);
/* The end of the name in braces, or of the group in brackets, that begins the text. */
const char *ci_pattern_next(const char *text);

/* proc_stmt_text.c */
typedef struct CiProcIo {
    CiTextIo io;
    CiBuild b; /* read: where statements go */
    CiMemory **memories; /* read: those whose names are seen */
    int nmemories, capmemories;
} CiProcIo;

CiMemory *ci_proc_io_declaration(CiProcIo *p, CiMemory *memory);
void ci_proc_io_block(CiProcIo *p, CiStmts *block);
/* The statement's own line, without what is inside of it. */
void ci_stmt_print(CiText *out, const CiStmt *stmt);

/* proc_bounds.c. Ends with what the proc breaks; stmt: where, or NULL. */
_Noreturn void ci_proc_fail(CiProcVerifier *v, const CiStmt *stmt, const char *why);

/* proc_tickets.c: checks that units which wait for others never wait forever. */
void ci_proc_verify_turns(CiProcVerifier *v);
/* proc_lane_loops.c: checks the marks of loops over lanes. */
void ci_proc_verify_lane_loops(CiProcVerifier *v);
/* proc_pointers.c: checks the pointers of accesses. */
void ci_proc_verify_pointers(CiProcVerifier *v);
/* proc_masks.c: checks the widths of masks. */
void ci_proc_verify_masks(CiProcVerifier *v);

/* proc_bounds.c: adds what the tests of a statement say where they hold, or where they do not. */
/* smaller + by <= larger */
void ci_proc_add_fact(CiProcVerifier *v, const CiExpr *smaller, const CiExpr *larger, int64_t by);
void ci_proc_add_tests(CiProcVerifier *v, const CiStmt *stmt, bool negated);
/* Counts the access where its lanes are not proved to lie inside of its memory; one of which it is
 * known that they do not is an error. */
void ci_proc_prove_access(CiProcVerifier *v, const CiStmt *stmt, int lanes);

#endif
