/* A proc on its way to stencils: declarations that the files of the translation share. */
#ifndef CI_DEVICE_STENCIL_TRANSLATE_H
#define CI_DEVICE_STENCIL_TRANSLATE_H

#include "base/map.h"
#include "codegen/codegen.h"
#include "device/device.h"
#include "device/stencil/stencil.h"

#define VECTOR_BYTES 32
#define MAX_FRAME (1 << 18)
#define MAX_DEPTH 64
#define MAX_FIXED 32 /* accesses of one loop with addresses of their own */
/* Numbers that stencil_entry leaves at the beginning of the frame. */
enum { BUFFERS = 0, SIZES = 8, SCALARS = 16, BEGIN = 24, END = 32, RUN = 40, ZERO = 48, ITERATIONS = 56, HEAD = 64 };

typedef struct Value {
    int root; /* the value that it is: of a splat its operand */
    int slot; /* -1: none yet */
    int mask; /* of a bool: bytes of a lane; 0: any number of them */
    int uses, depth;
    int last; /* the number of the last statement that needs it */
    int next; /* that ends with the same statement; -1: none */
    bool is_borrowed; /* the place is that of a memory or a constant */
} Value;

typedef struct Slot {
    int slot; /* of the address, or of the first value */
    bool has_values; /* one place in the frame for each element */
    int mask;
} Slot;

/* An access in the innermost loop. */
typedef struct Fixed {
    const CiMemory *memory;
    const CiExpr *index;
    int slot;
    int64_t offset;
    bool moves;
} Fixed;

typedef struct Translator {
    void (*block)(struct Translator *t, const CiStmts *block); /* translates statements */
    CiContext *ctx;
    CiStencilCode *code;
    CiSym *sym;
    const CiKernels *kernels;
    const CiProc *proc;
    Value *values;
    int *ended; /* by the number of a statement: the first value that ends with it */
    CiMap *slots;    /* of symbols, plus 1 */
    CiMap *memories; /* Place */
    CiMap *constants; /* by bits, slot plus 1 */
    int number, count; /* of the next statement; of statements */
    int ancestors[MAX_DEPTH];
    int frame, *free, nfree, capfree;
    int acc;             /* the value in it, or -1 */
    const CiExpr *x, *n; /* what these registers have; NULL: not known */
    bool x_is_i;
    Fixed fixed[MAX_FIXED];
    int nfixed;
    int interrupted, leave; /* labels: of the end of a kernel that is cancelled, of the innermost loop's */
} Translator;

#define REFUSE(t, ...) ci_fail((t)->ctx, CI_ERR_UNSUPPORTED, __VA_ARGS__)

typedef struct Address {
    int slot;
    int64_t offset;
} Address;

/* locations.c */
void ci_stencil_put_jump(Translator *t, const char *name, int64_t first, int64_t second, int label);
void ci_stencil_put(Translator *t, const char *name, int64_t first, int64_t second);
int ci_stencil_take_bytes(Translator *t, int64_t bytes, int align);
int ci_stencil_take_number(Translator *t);
int ci_stencil_take_value(Translator *t);
void ci_stencil_give_value(Translator *t, int slot);
void ci_stencil_forget(Translator *t);
void ci_stencil_here(Translator *t, int label);
int ci_stencil_symbol(Translator *t, const CiExpr *symbol);
int ci_stencil_new_symbol(Translator *t, const CiExpr *symbol);
Slot *ci_stencil_slot(Translator *t, const CiMemory *memory);
void ci_stencil_x_to_slot(Translator *t, int slot);
int ci_stencil_operand(Translator *t, const CiExpr *e);
void ci_stencil_x_is(Translator *t, int64_t value);
void ci_stencil_compute(Translator *t, const CiExpr *e);
void ci_stencil_make_x(Translator *t, const CiExpr *e);
void ci_stencil_make_n(Translator *t, const CiExpr *e);
int ci_stencil_size(CiDtype dtype);
int ci_stencil_mask_of_lanes(int lanes); /* bytes of a lane, of bools in registers */
uint64_t ci_stencil_bits(CiDtype dtype, CiConst constant); /* eight bytes of a splat */
bool ci_stencil_has_type(CiDtype dtype);

/* values.c */
void ci_stencil_check_type(Translator *t, CiType type);
Value *ci_stencil_root(Translator *t, int value);
void ci_stencil_to_acc(Translator *t, int value);
void ci_stencil_mask_to_acc(Translator *t, int value, int width);
bool ci_stencil_is_register(const CiMemory *memory);
void ci_stencil_define(Translator *t, const CiStmt *let, int number);
void ci_stencil_let(Translator *t, const CiStmt *let, int number);
bool ci_stencil_is_borrowed(const Translator *t, const CiStmt *load, int number);

/* accesses.c */
Address ci_stencil_address(Translator *t, const CiAccess *at);
void ci_stencil_load(Translator *t, const CiStmt *stmt, int number);
void ci_stencil_store(Translator *t, const CiStmt *stmt);

/* loops.c */
void ci_stencil_test(Translator *t, const CiStmt *stmt, int label);
void ci_stencil_branch(Translator *t, const CiStmt *stmt);
void ci_stencil_serial(Translator *t, const CiStmt *stmt);
void ci_stencil_parallel(Translator *t, const CiStmt *outer);
void ci_stencil_endless(Translator *t, const CiStmt *stmt);
void ci_stencil_leave(Translator *t, const CiStmt *stmt);
int ci_stencil_count_statements(const CiStmts *block); /* at any depth */

#endif
