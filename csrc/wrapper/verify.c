/* The verifier of wrappers: checks the lines of a program, and fails with CI_ERR_INTERNAL and the
 * number of a wrong line.
 *
 * Every buffer is allocated before use, freed once and not used after, in the block that allocated
 * it. Results belong to the caller and are never freed. The size of memory is known when it is
 * used. Symbols are defined before use. */
#include "analysis/templates.h"
#include "base/map.h"
#include "wrapper/allocate.h"

#include <string.h>

typedef enum State { STATE_none, STATE_live, STATE_freed } State;

typedef struct Verify {
    const CiWrapper *wrapper;
    CiContext *ctx;
    State *states;  /* per buffer */
    bool *is_on_its_way; /* per buffer: a copy to it has begun and has not been waited for */
    int *block;     /* per buffer: line of the region that allocated it, -1 for none */
    const CiExpr **offset; /* per buffer: of a part, where it begins */
    CiMap *defined; /* symbols */
    int line, open; /* now; the line that opened the block we are in, -1 for none */
    int *outer;     /* per opening line: what was open there */
} Verify;

static void
refuse(const Verify *verify, const char *what, const char *name)
{
    ci_fail(verify->ctx, CI_ERR_INTERNAL, "wrapper line %d: %s %s", verify->line, name, what);
}

static void
check_symbol(void *arg, const CiExpr *symbol)
{
    const Verify *verify = arg;
    if (!ci_map_find(verify->defined, CI_KEY(symbol)))
        refuse(verify, "is used before it is defined", symbol->name);
}

static void
check_expr(Verify *verify, const CiExpr *e)
{
    if (e)
        ci_expr_visit_symbols(e, check_symbol, verify);
}

static void
check_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    const Verify *verify = arg;
    if (!buffer)
        refuse(verify, "is on no side that it needs", "a buffer");
    State state = verify->states[buffer->id];
    if (state == STATE_none)
        refuse(verify, "is used before it is allocated", buffer->name);
    if (state == STATE_freed)
        refuse(verify, "is used after it was freed", buffer->name);
    if (verify->is_on_its_way[buffer->id])
        refuse(verify, "is used before its copy has been waited for", buffer->name);
    if (is_stored && buffer->kind == CI_BUFFER_input && !buffer->is_written)
        refuse(verify, "is stored to, but not marked as written", buffer->name);
}

/* Of a line that allocates, frees or copies. */
static void
check_bytes(const Verify *verify, const CiLine *line)
{
    CiSym *sym = verify->wrapper->kernels->loops->sym;
    bool is_copy = line->other && line->kind != CI_LINE_part;
    if (line->bytes != ci_buffer_bytes(sym, line->buffer) ||
        (is_copy && line->bytes != ci_buffer_bytes(sym, line->other)))
        refuse(verify, "takes other memory than its sizes come to", line->buffer->name);
}

/* Code that runs on the device can reach it. */
static void
check_side(const Verify *verify, const CiLine *line)
{
    CiSide side = line->kernel ? CI_SIDE_device + line->kernel->device
                               : ci_wrapper_side_of_call(verify->wrapper, line->ext);
    if (line->side != side)
        refuse(verify, "cannot run there", line->kernel ? line->kernel->name : line->ext->ext->name);
}

/* Checks an element that the host reads. */
static void
check_element(const Verify *verify, const CiBuffer *buffer, CiDtype dtype)
{
    if (buffer->dtype != dtype || !ci_is_one_element(verify->wrapper->kernels->loops->sym, buffer))
        refuse(verify, ci_format(verify->ctx, "is read by the host, but is no %s", ci_dtype_name(dtype)),
               buffer->name);
    if (buffer->kind != CI_BUFFER_scalar && !ci_wrapper_is_on_host(verify->wrapper, buffer))
        refuse(verify, "is read by the host, but on a device", buffer->name);
}

static void
check_copy(const Verify *verify, const CiLine *line, bool from_host, bool to_host)
{
    if ((ci_wrapper_side(verify->wrapper, line->other) == CI_SIDE_host) != from_host ||
        (line->at == CI_SIDE_host) != to_host)
        refuse(verify, "is copied from or to another side", line->buffer->name);
}

static void
check_birth(Verify *verify, const CiLine *line)
{
    const CiBuffer *buffer = line->buffer;
    if (buffer->kind != CI_BUFFER_temp || verify->states[buffer->id] == STATE_live)
        refuse(verify, "is allocated twice", buffer->name);
    if (buffer->is_result != (line->kind == CI_LINE_alloc_result))
        refuse(verify, "is allocated by the wrong side", buffer->name);
    if ((line->kind == CI_LINE_part) != (verify->wrapper->pool_of[buffer->id] != NULL) &&
        line->kind != CI_LINE_reuse)
        refuse(verify, "is part of a pool or is none", buffer->name);
    if (buffer->is_result && verify->open >= 0)
        refuse(verify, "is a result, but allocated inside a region", buffer->name);
    for (int axis = 0; axis < buffer->rank; axis++)
        check_expr(verify, buffer->strides[axis]);
    verify->states[buffer->id] = STATE_live;
    verify->block[buffer->id] = verify->open;
}

/* Checks that the part is inside its pool and disjoint from all parts that are live at the same
 * time. */
static void
check_part(Verify *verify, const CiLine *line)
{
    const CiWrapper *w = verify->wrapper;
    CiSym *sym = w->kernels->loops->sym;
    const CiExpr *start = line->value, *end = ci_expr_add(sym, start, line->bytes);
    const CiExpr *capacity = ci_expr_add(sym, start, ci_pool_capacity(sym, line->bytes));
    const CiExpr *all = ci_buffer_bytes(sym, line->other);
    if (line->other->id < w->first_pool)
        refuse(verify, "is no pool", line->other->name);
    if (w->pool_of[line->buffer->id] != line->other || ci_wrapper_side(w, line->buffer) !=
                                                           ci_wrapper_side(w, line->other))
        refuse(verify, "is part of another pool", line->buffer->name);
    if (!ci_sym_known_multiple_of(sym, start, ci_pool_capacity(sym, ci_expr_const(sym, 1))))
        refuse(verify, "begins within a line of the cache", line->buffer->name);
    if (!ci_sym_known_le(sym, end, all) && !ci_sym_known_le(sym, capacity, all))
        refuse(verify, "ends after its pool", line->buffer->name);
    for (int i = 0; i < w->nbuffers; i++) {
        if (w->pool_of[i] != line->other || verify->states[i] != STATE_live)
            continue;
        const CiExpr *from = verify->offset[i];
        const CiExpr *to = ci_expr_add(
            sym, from, ci_pool_capacity(sym, ci_buffer_bytes(sym, w->buffers[i])));
        if (!ci_sym_known_le(sym, to, start) && !ci_sym_known_le(sym, capacity, from))
            refuse(verify, ci_format(verify->ctx, "overlaps %s", w->buffers[i]->name),
                   line->buffer->name);
    }
    verify->offset[line->buffer->id] = start;
}

static bool
has_parts(const Verify *verify, const CiBuffer *pool)
{
    for (int i = 0; i < verify->wrapper->nbuffers; i++)
        if (verify->wrapper->pool_of[i] == pool && verify->states[i] == STATE_live)
            return true;
    return false;
}

static void
check_death(Verify *verify, const CiBuffer *buffer, CiLineKind kind)
{
    bool is_part = verify->wrapper->pool_of[buffer->id] != NULL;
    if (kind != CI_LINE_reuse && is_part != (kind == CI_LINE_leave))
        refuse(verify, "is not freed as it was allocated", buffer->name);
    if (has_parts(verify, buffer))
        refuse(verify, "is freed, but parts of it are used", buffer->name);
    if (buffer->kind != CI_BUFFER_temp || buffer->is_result)
        refuse(verify, "is freed, but not the program's own", buffer->name);
    if (verify->states[buffer->id] != STATE_live)
        refuse(verify, "is freed, but not allocated", buffer->name);
    if (verify->is_on_its_way[buffer->id])
        refuse(verify, "is freed before its copy has been waited for", buffer->name);
    if (verify->block[buffer->id] != verify->open)
        refuse(verify, "is freed in another region than it was allocated in", buffer->name);
    verify->states[buffer->id] = STATE_freed;
}

static void
check_drop(Verify *verify, const CiBuffer *buffer)
{
    if (buffer->kind != CI_BUFFER_input || buffer->is_written)
        refuse(verify, "is dropped, but no input that is only read", buffer->name);
    if (verify->open >= 0)
        refuse(verify, "is dropped in a region", buffer->name);
    verify->states[buffer->id] = STATE_freed;
}

static void
check_takeover(Verify *verify, const CiLine *line)
{
    CiSym *sym = verify->wrapper->kernels->loops->sym;
    const CiBuffer *buffer = line->buffer, *other = line->other;
    const CiExpr *sizes[2];
    const CiBuffer *both[2] = {buffer, other};
    for (int k = 0; k < 2; k++)
        sizes[k] = ci_expr_product_of(sym, both[k]->sizes, both[k]->rank);
    if (sizes[0] != sizes[1] || buffer->dtype != other->dtype)
        refuse(verify, "takes over memory of another size", buffer->name);
    if (ci_wrapper_side(verify->wrapper, buffer) != ci_wrapper_side(verify->wrapper, other))
        refuse(verify, "takes over memory of another side", buffer->name);
    if (verify->wrapper->pool_of[buffer->id] != verify->wrapper->pool_of[other->id])
        refuse(verify, "takes over memory of another pool", buffer->name);
    verify->offset[buffer->id] = verify->offset[other->id];
    if (verify->wrapper->pinned[buffer->id] != verify->wrapper->pinned[other->id])
        refuse(verify, "takes over memory that others reach by themselves", buffer->name);
}

static void
check_launch(Verify *verify, const CiKernel *kernel)
{
    for (int k = 0; k < kernel->nsize_args; k++)
        check_expr(verify, kernel->size_args[k]);
}

/* Each iteration of a parallel loop may store only to its own part of memory from outside the
 * loop. */
static void
check_own_part(const Verify *verify, const CiBuffer *buffer, bool is_of_one_iteration)
{
    const CiWrapper *w = verify->wrapper;
    for (int open = verify->open; open >= 0; open = verify->outer[open])
        if (w->lines[open].is_parallel && verify->block[buffer->id] < open && !is_of_one_iteration)
            refuse(verify, "is stored to by every turn of a parallel loop", buffer->name);
}

static bool
depends_on_iteration(const Verify *verify, const CiExpr *e)
{
    bool depends = false;
    for (int open = verify->open; open >= 0; open = verify->outer[open]) {
        const CiLine *line = &verify->wrapper->lines[open];
        depends |= line->is_parallel && ci_expr_depends_on(e, line->symbol);
    }
    return depends;
}

static void
check_iterations(const Verify *verify, const CiLine *line)
{
    const CiKernel *kernel = line->kernel;
    const CiExternItem *ext = line->ext;
    bool takes_iteration = false;
    for (int k = 0; kernel && k < kernel->nsize_args; k++)
        takes_iteration |= depends_on_iteration(verify, kernel->size_args[k]);
    for (int k = 0; kernel && k < kernel->nbuffers; k++)
        if (kernel->is_stored[k] && kernel->buffers[k]->kind != CI_BUFFER_scalar)
            check_own_part(verify, kernel->buffers[k], takes_iteration);
    if (ext)
        check_own_part(verify, ext->result,
                       depends_on_iteration(verify, ext->offsets[ext->noperands]));
}

static void
check_extern(Verify *verify, const CiExternItem *ext)
{
    for (int k = 0; k <= ext->noperands; k++) {
        check_expr(verify, ext->offsets[k]);
        for (int axis = 0; axis < ext->ranks[k]; axis++) {
            check_expr(verify, ext->sizes[k][axis]);
            check_expr(verify, ext->strides[k][axis]);
        }
    }
}

static void
check_return(Verify *verify)
{
    const CiWrapper *w = verify->wrapper;
    const CiLoops *loops = w->kernels->loops;
    if (verify->line != w->nlines - 1)
        refuse(verify, "is not the last line", "return");
    for (int i = 0; i < w->nbuffers; i++)
        if (w->buffers[i]->kind == CI_BUFFER_temp && !w->buffers[i]->is_result &&
            verify->states[i] == STATE_live)
            refuse(verify, "is never freed", w->buffers[i]->name);
    for (int i = 0; i < loops->nresults; i++) {
        const CiResult *result = &loops->results[i];
        check_expr(verify, result->offset);
        for (int axis = 0; axis < result->rank; axis++) {
            check_expr(verify, result->sizes[axis]);
            check_expr(verify, result->strides[axis]);
        }
        if (result->buffer->kind == CI_BUFFER_temp && !result->buffer->is_result)
            refuse(verify, "is returned, but no result", result->buffer->name);
    }
}

static bool
has_test(const CiWrapper *w, int open)
{
    for (int i = open + 1; i < w->lines[open].match; i++)
        if (w->lines[i].kind == CI_LINE_test && w->lines[i].open == open)
            return true;
    return false;
}

/* Regions: a line and its end know each other, and what a block allocates it frees. */
static void
check_region(Verify *verify, const CiLine *line)
{
    const CiWrapper *w = verify->wrapper;
    if (ci_line_closes(line)) {
        if (verify->open < 0 || line->open != verify->open ||
            w->lines[verify->open].match != verify->line)
            refuse(verify, "does not match its region", "end");
        for (int i = 0; i < w->nbuffers; i++)
            if (verify->states[i] == STATE_live && verify->block[i] == verify->open)
                refuse(verify, "is not freed in its region", w->buffers[i]->name);
        if (line->kind == CI_LINE_else && w->lines[verify->open].kind != CI_LINE_if)
            refuse(verify, "is of no if", "else");
        if (w->lines[verify->open].kind == CI_LINE_while && !has_test(w, verify->open))
            refuse(verify, "never ends", "while");
        verify->open = verify->outer[verify->open];
    }
}

/* An exit from the middle of a loop must free the memory that is live there in the loop's block. */
static void
check_exit(const Verify *verify, const CiLine *line)
{
    const CiWrapper *w = verify->wrapper;
    int nlive = 0;
    if (verify->open != line->open || w->lines[line->open].kind != CI_LINE_while)
        refuse(verify, "does not stand in its loop", "test");
    for (int i = 0; i < w->nbuffers; i++)
        nlive += verify->states[i] == STATE_live && verify->block[i] == verify->open &&
                 w->buffers[i]->kind == CI_BUFFER_temp;
    for (int k = 0; k < line->nfrees; k++) {
        const CiBuffer *buffer = line->frees[k];
        if (verify->states[buffer->id] != STATE_live || verify->block[buffer->id] != verify->open)
            refuse(verify, "is freed at the exit of the block, but has no memory", buffer->name);
    }
    if (nlive != line->nfrees)
        refuse(verify, "leaves memory behind", "test");
}

/* Checks the rules of a line's kind that its row does not state. */
static void
check_kind(Verify *verify, const CiLine *line)
{
    switch (line->kind) {
    case CI_LINE_symbol:
        if (line->number < 0
                ? line->buffer->kind != CI_BUFFER_scalar
                : line->buffer->kind != CI_BUFFER_input || line->number >= line->buffer->rank ||
                      line->buffer->sizes[line->number] != line->symbol)
            refuse(verify, "is not what its line says", line->symbol->name);
        break;
    case CI_LINE_reuse:
    case CI_LINE_swap:
        check_takeover(verify, line);
        break;
    case CI_LINE_copy_in:
        check_copy(verify, line, true, false);
        break;
    case CI_LINE_copy_across:
        check_copy(verify, line, false, false);
        break;
    case CI_LINE_copy_out:
        check_copy(verify, line, false, true);
        break;
    case CI_LINE_part:
        check_part(verify, line);
        break;
    case CI_LINE_copy_out_start:
        check_copy(verify, line, false, true);
        if (verify->wrapper->pinned[line->buffer->id] !=
            ci_wrapper_side(verify->wrapper, line->other))
            refuse(verify, "is no memory that the device reaches by itself", line->buffer->name);
        break;
    case CI_LINE_mark:
        if (!verify->wrapper->pinned[line->buffer->id])
            refuse(verify, "is no memory that the device reaches by itself", line->buffer->name);
        break;
    case CI_LINE_wait:
        if (!verify->is_on_its_way[line->buffer->id])
            refuse(verify, "is waited for, but no copy to it has begun", line->buffer->name);
        verify->is_on_its_way[line->buffer->id] = false;
        break;
    case CI_LINE_join:
        if (!line->ext || !ci_wrapper_runs_alongside(verify->wrapper, verify->line))
            refuse(verify, "is waited for, but no collective of its block stores it by itself", line->buffer->name);
        break;
    case CI_LINE_define:
        check_element(verify, line->buffer, CI_DTYPE_i64);
        break;
    case CI_LINE_test:
        check_exit(verify, line);
        /* fall through */
    case CI_LINE_check:
    case CI_LINE_if:
        check_element(verify, line->buffer, CI_DTYPE_bool);
        break;
    case CI_LINE_return:
        check_return(verify);
        break;
    default:
        break;
    }
}

static void
check_line(Verify *verify, const CiLine *line)
{
    const CiLineRow *row = ci_line_row(line->kind);
    if ((row->buffer != CI_USE_none) != (line->buffer != NULL) ||
        (row->other != CI_USE_none) != (line->other != NULL))
        refuse(verify, "has operands that its row has not", row->name);
    if (line->kernel || line->ext)
        check_side(verify, line);
    check_kind(verify, line);
    if (strstr(row->text, "{bytes}"))
        check_bytes(verify, line);
    if (strstr(row->text, "{at}") && line->at != ci_wrapper_side(verify->wrapper, line->buffer))
        refuse(verify, "is on another side", line->buffer->name);
    check_expr(verify, line->value);
    check_expr(verify, line->bytes);
    if (line->kernel)
        check_launch(verify, line->kernel);
    if (line->ext)
        check_extern(verify, line->ext);
    check_iterations(verify, line);
    if (line->symbol)
        ci_map_put(verify->defined, CI_KEY(line->symbol), (void *)line->symbol);
    if (row->other == CI_USE_last)
        check_death(verify, line->other, line->kind);
    if (line->kind == CI_LINE_drop)
        check_drop(verify, line->buffer);
    else if (row->buffer == CI_USE_last)
        check_death(verify, line->buffer, line->kind);
    if (row->buffer == CI_USE_defines)
        check_birth(verify, line);
    ci_line_visit(verify->wrapper, line, check_use, verify);
    if (line->kind == CI_LINE_copy_out_start || line->kind == CI_LINE_mark)
        verify->is_on_its_way[line->buffer->id] = true;
}

static void
verify_lines(CiContext *ctx, void *arg)
{
    Verify *verify = arg;
    const CiWrapper *wrapper = verify->wrapper;
    for (int i = 0; i < wrapper->nbuffers; i++) {
        if (wrapper->buffers[i]->kind == CI_BUFFER_temp)
            continue;
        if (wrapper->pool_of[i])
            refuse(verify, "is part of a pool, but not the program's own", wrapper->buffers[i]->name);
        verify->states[i] = STATE_live;
    }
    verify->outer = CI_NEW_ARRAY(ctx, int, wrapper->nlines + 1);
    for (int i = 0; i < wrapper->nlines; i++) {
        const CiLine *line = &wrapper->lines[i];
        verify->line = i;
        check_region(verify, line);
        check_line(verify, line);
        verify->outer[i] = verify->open;
        if (ci_line_opens(line))
            verify->open = i;
    }
    if (verify->open >= 0 || wrapper->nlines == 0 ||
        wrapper->lines[wrapper->nlines - 1].kind != CI_LINE_return)
        refuse(verify, "has no return at its end", "the program");
}

/* An error in the arithmetic of sizes names the line, too. */
void
ci_wrapper_verify(const CiWrapper *wrapper)
{
    CiContext *ctx = wrapper->ctx;
    Verify verify = {.wrapper = wrapper, .ctx = ctx, .open = -1};
    verify.states = CI_NEW_ARRAY(ctx, State, wrapper->nbuffers + 1);
    verify.block = CI_NEW_ARRAY(ctx, int, wrapper->nbuffers + 1);
    verify.offset = CI_NEW_ARRAY(ctx, const CiExpr *, wrapper->nbuffers + 1);
    verify.is_on_its_way = CI_NEW_ARRAY(ctx, bool, wrapper->nbuffers + 1);
    verify.defined = ci_map_new(ctx);
    CiStatus status = ci_protect(ctx, verify_lines, &verify);
    const char *message = status ? ci_format(ctx, "%s", ci_context_message(ctx)) : NULL;
    if (status == CI_ERR_INTERNAL || status == CI_ERR_MEMORY)
        ci_fail(ctx, status, "%s", message);
    if (status)
        ci_fail(ctx, status, "wrapper line %d: %s", verify.line, message);
}
