/* Shared declarations of the files that verify, print and parse procs. */
#ifndef CI_IR_PROC_PRIVATE_H
#define CI_IR_PROC_PRIVATE_H

#include "ir/text_common.h"
#include "ir/proc.h"

typedef struct CiProcSymbol {
    const CiExpr *symbol;
    int lanes; /* number of lanes, each with its own value; 1: the symbol has one value */
} CiProcSymbol;

/* The state of verification at a statement. At the end of a block its additions are removed. */
typedef struct CiProcVerifier {
    CiContext *ctx;
    CiSym *sym;
    const CiProc *proc;
    bool *is_alive, *is_defined; /* by value */
    int *values;                 /* the values in scope, in order of definition */
    int nvalues, capvalues;
    const CiMemory **memories;
    int nmemories, capmemories;
    CiProcSymbol *symbols;
    int nsymbols, capsymbols;
    const CiExpr **facts; /* each at least 0 */
    int nfacts, capfacts;
    int nblocks, nloops, nunrolled; /* number of blocks, loops and unrolled loops around the statement */
    int ngrids, nmeets;             /* number of loops of that run mode around it; at most one each */
    const CiExpr *thread;           /* the variable of a loop over threads around it, or NULL */
    int nshared;                    /* memories that are declared outside that loop */
    int nproofs, nunproved;
} CiProcVerifier;

/* The operands that texts in proc.def name: OPERAND(name, type, member of CiStmt). symbol: the symbol that a bind defines,
 * with its bounds. reductions: operations, each with its accumulators. otherwise: the value of a load in lanes that are not
 * live. flag: it has no text of its own. */
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

/* The pattern of the statement's text. */
const char *ci_stmt_pattern(const CiStmt *stmt);
/* The operand whose name, in braces, is at the start of the text. */
const CiOperand *ci_stmt_operand(const char *text);
/* The end of the name in braces, or the group in brackets, at the start of the text. */
const char *ci_pattern_next(const char *text);

/* proc_stmt_text.c */
typedef struct CiProcIo {
    CiTextIo io;
    CiBuild b; /* reading: the builder that gets the statements */
    CiMemory **memories; /* reading: the memories in scope */
    int nmemories, capmemories;
} CiProcIo;

CiMemory *ci_proc_io_declaration(CiProcIo *p, CiMemory *memory);
void ci_proc_io_block(CiProcIo *p, CiStmts *block);
/* Prints the statement's first line, without its blocks. */
void ci_stmt_print(CiText *out, const CiStmt *stmt);

/* proc_bounds.c. Fails with the rule that the proc violates; stmt: the statement, or NULL. */
_Noreturn void ci_proc_fail(CiProcVerifier *v, const CiStmt *stmt, const char *why);

/* proc_tickets.c: checks that units which wait for others never wait forever. */
void ci_proc_verify_turns(CiProcVerifier *v);
/* proc_lane_loops.c: checks the marks of loops over lanes. */
void ci_proc_verify_lane_loops(CiProcVerifier *v);
/* proc_pointers.c: checks the pointers of accesses. */
void ci_proc_verify_pointers(CiProcVerifier *v);
/* proc_masks.c: checks the widths of masks. */
void ci_proc_verify_masks(CiProcVerifier *v);

/* proc_bounds.c: adds the fact smaller + by <= larger. */
void ci_proc_add_fact(CiProcVerifier *v, const CiExpr *smaller, const CiExpr *larger, int64_t by);
/* Adds the facts that follow if the tests of a statement hold, or (negated) do not hold. */
void ci_proc_add_tests(CiProcVerifier *v, const CiStmt *stmt, bool negated);
/* Counts the access in v->nunproved if its lanes are not proved to be in bounds. Fails if they are proved to be out of
 * bounds. */
void ci_proc_prove_access(CiProcVerifier *v, const CiStmt *stmt, int lanes);

#endif
