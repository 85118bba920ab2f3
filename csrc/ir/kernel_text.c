/* Kernels as text. Invariant: parse(print(kernels)) prints the same text, and makes the same source.
 * Refusals of the scheduler are comments, at the end, in the order they were met. */
#include "ir/kernel_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- kernels ---- */

/* takes in0, out buf0; sizes s0, 4*s1 */
static void
io_arguments(CiLoopIo *p, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    int capstored = 0, nstored = 0;
    ci_io_indent(f);
    ci_io_text(f, "takes");
    bool takes_any = f->out || (f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "work"));
    for (int k = 0; takes_any && ci_io_more(f, k, kernel->nbuffers, NULL); k++) {
        ci_io_text(f, k ? "" : " ");
        bool is_stored =
            ci_io_flag(f, "out ", f->out && kernel->is_stored && kernel->is_stored[k]);
        CiBuffer *buffer = ci_loop_io_buffer(p, f->out ? kernel->buffers[k] : NULL);
        if (f->out)
            continue;
        buffer->is_written |= is_stored && buffer->kind == CI_BUFFER_input;
        CI_PUSH(f->ctx, kernel->buffers, kernel->nbuffers, kernel->capbuffers, buffer);
        CI_PUSH(f->ctx, kernel->is_stored, nstored, capstored, is_stored);
    }
    bool has_sizes = ci_io_flag(f, "; sizes ", kernel->nsize_args > 0);
    for (int k = 0; has_sizes && (f->out ? k < kernel->nsize_args : !k || ci_io_flag(f, ",", false)); k++) {
        const CiExpr *size = f->out ? kernel->size_args[k] : NULL;
        ci_io_expr(f, f->out && k ? "," : "", &size, "");
        if (!f->out)
            CI_PUSH(f->ctx, kernel->size_args, kernel->nsize_args, kernel->capsize_args, size);
    }
    ci_io_text(f, "\n");
}

/* for i0<s0 parallel, rows of s1<=16 are lanes split 4096 { … } */
static void
io_loops(CiLoopIo *p, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    int outside = f->nscope;
    if (ci_io_flag(f, "template ", kernel->kind != CI_TEMPLATE_none)) {
        kernel->kind =
            (CiTemplate)ci_io_choice(f, ci_template_names, CI_TEMPLATE_COUNT, kernel->kind, "template");
        ci_io_text(f, " ");
    }
    ci_io_text(f, "for");
    ci_kernel_io_axes(p, &kernel->outer, &kernel->nouter);
    kernel->nparallel = f->out ? kernel->nparallel : kernel->nouter;
    kernel->lanes_on_outer = ci_io_flag(f, " lanes on outer", kernel->lanes_on_outer);
    if (ci_io_flag(f, ", rows of ", kernel->row != NULL)) {
        ci_io_expr(f, "", &kernel->row, "<=");
        kernel->short_row = ci_io_int(f, kernel->short_row);
        ci_io_text(f, " are lanes");
    }
    kernel->is_chained = ci_io_flag(f, " chained ", kernel->split_extent && kernel->is_chained);
    if (ci_io_flag(f, " split into ", !kernel->split_extent && kernel->split_chunks))
        kernel->split_chunks = (int)ci_io_int(f, kernel->split_chunks);
    else if (kernel->is_chained || ci_io_flag(f, " split ", kernel->split_extent != NULL))
        ci_io_expr(f, "", &kernel->split_extent, "");
    ci_io_enter(f, " {");
    kernel->locs = ci_io_locs(f, kernel->locs, &kernel->nlocs);
    kernel->caplocs = f->out ? kernel->caplocs : kernel->nlocs;
    ci_io_text(f, "\n");
    io_arguments(p, kernel);
    ci_io_indent(f);
    ci_io_expr(f, "work ", &kernel->unit_work, "\n");
    ci_kernel_io_stages(p, kernel, kernel);
    ci_io_leave(f, "}\n");
    ci_io_leave_scope(f, outside);
}

static void io_list(CiLoopIo *p, CiKernels *kernels);

static CiKernels *
io_block(CiLoopIo *p, const CiMachine *machine, CiRegion *swaps, CiKernels *kernels)
{
    CiTextIo *f = &p->io;
    if (!f->out)
        kernels = CI_NEW(f->ctx, CiKernels);
    ci_io_enter(f, " {\n");
    if (!f->out)
        *kernels = (CiKernels){.loops = p->loops, .machine = machine};
    if (kernels)
        io_list(p, kernels);
    if (swaps)
        ci_loop_io_swaps(p, swaps);
    ci_io_leave(f, "}");
    return kernels && kernels->nkernels ? kernels : NULL;
}

/* loop t0<s0 { … }   while buf1 { … } test after { … }   if buf1 { … } else { … } */
static void
io_region(CiLoopIo *p, const CiMachine *machine, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    CiRegion *region = kernel->region = f->out ? kernel->region : CI_NEW(f->ctx, CiRegion);
    int outside = f->nscope;
    region->device = f->out ? region->device : kernel->device;
    if (ci_io_flag(f, "loop ", region->var != NULL)) {
        region->kind = CI_ITEM_for;
        region->var = ci_loop_io_variable(p, region->var, &region->extent);
        region->is_parallel = ci_io_flag(f, " parallel", region->is_parallel);
    } else {
        bool is_while = ci_io_flag(f, "while ", region->kind == CI_ITEM_while);
        region->kind = is_while ? CI_ITEM_while : CI_ITEM_if;
        ci_io_text(f, is_while ? "" : "if ");
        region->condition = ci_loop_io_buffer(p, region->condition);
    }
    kernel->inner[0] = io_block(p, machine, region, kernel->inner[0]);
    const char *second = region->kind == CI_ITEM_while ? " test after" : " else";
    if (region->kind != CI_ITEM_for && ci_io_flag(f, second, kernel->inner[1] != NULL))
        kernel->inner[1] = io_block(p, machine, NULL, kernel->inner[1]);
    ci_io_text(f, "\n");
    ci_io_leave_scope(f, outside);
}

/* k0: … */
static void
io_kernel(CiLoopIo *p, const CiMachine *machine, CiKernel *kernel)
{
    CiTextIo *f = &p->io;
    CiLexer *lex = &f->lex;
    ci_io_indent(f);
    kernel->name = ci_io_word(f, kernel->name);
    kernel->id = f->out ? kernel->id : (int)strtol(kernel->name + 1, NULL, 10);
    ci_io_text(f, ":");
    kernel->device = ci_io_device(f, kernel->device);
    ci_io_text(f, " ");
    if (ci_io_flag(f, "extern ", kernel->ext != NULL)) {
        CiExternItem *ext = kernel->ext = ci_loop_io_extern(p, kernel->ext);
        ci_io_text(f, " -> ");
        CiBuffer *result = ci_loop_io_buffer(p, ext->result);
        if (!f->out) {
            ext->device = kernel->device;
            ci_extern_set_result(f->sym, ext, result);
        }
        ext->loc = ci_io_loc(f, "  ", ext->loc);
        ci_io_text(f, "\n");
    } else if (f->out ? kernel->check != NULL : ci_loop_is_check(p)) {
        kernel->check = ci_loop_io_check(p, kernel->check);
    } else if (f->out ? !kernel->region : ci_lexer_is(lex, "for") || ci_lexer_is(lex, "template")) {
        io_loops(p, kernel);
    } else {
        io_region(p, machine, kernel);
    }
}

static void
io_list(CiLoopIo *p, CiKernels *kernels)
{
    CiTextIo *f = &p->io;
    for (int k = 0; f->out && k < kernels->nkernels; k++)
        io_kernel(p, kernels->machine, kernels->kernels[k]);
    for (int k = 0; k < kernels->nrefusals; k++)
        ci_text_line(f->out, "# %s", kernels->refusals[k]);
    for (int k = 0; k < kernels->nnotes; k++)
        ci_text_line(f->out, "# %s", kernels->notes[k]);
    while (!f->out && f->lex.kind == CI_TOKEN_name && !ci_lexer_is(&f->lex, "return") &&
           !ci_lexer_is(&f->lex, "swap")) {
        CiKernel *kernel = CI_NEW(f->ctx, CiKernel);
        io_kernel(p, kernels->machine, kernel);
        CI_PUSH(f->ctx, kernels->kernels, kernels->nkernels, kernels->capkernels, kernel);
    }
}

/* Temps, in the order of their numbers, wherever they live: buf0: f64[u0] private */
static void
io_buffers(CiLoopIo *p)
{
    CiTextIo *f = &p->io;
    CiLoops *loops = p->loops;
    for (int k = loops->ninputs; f->out ? k < loops->nbuffers
                                        : f->lex.kind == CI_TOKEN_name && !strncmp(f->lex.string, "buf", 3);
         k++) {
        ci_io_indent(f);
        CiBuffer *buffer = ci_loop_io_declaration(p, f->out ? loops->buffers[k] : NULL, false);
        buffer->is_private = ci_io_flag(f, " private", buffer->is_private);
        ci_io_text(f, "\n");
    }
}

typedef struct Whole {
    CiLoopIo p;
    CiKernels *kernels;
} Whole;

static void
io_text(void *arg)
{
    Whole *whole = arg;
    CiLoopIo *p = &whole->p;
    CiTextIo *f = &p->io;
    const CiMachine *machine = whole->kernels->machine;
    ci_loop_io_head(p, "kernels");
    if (ci_io_flag(f, " device=", machine != NULL)) {
        ci_io_text(f, machine->device);
        ci_io_text(f, " backend=");
        ci_io_text(f, machine->backend);
    }
    ci_io_enter(f, " {\n");
    for (int k = 0; f->out && k < ci_map_count(p->defined); k++)
        ci_loop_print_defined(p, ((CiCheckItem *)ci_map_value_at(p->defined, k))->symbol);
    while (!f->out && ci_loop_read_defined(p))
        ;
    io_buffers(p);
    io_list(p, whole->kernels);
    ci_loop_io_end(p);
}

static void
note_check(CiMap *defined, const CiCheckItem *check)
{
    if (check && check->symbol)
        ci_map_put(defined, CI_KEY(check->symbol), (void *)check);
}

/* Symbols that checks define. */
static void
note_defined(void *arg, const CiKernel *kernel)
{
    note_check(arg, kernel->check);
    for (int k = 0; k < kernel->nchecks; k++)
        note_check(arg, kernel->checks[k]);
}

void
ci_kernels_print(CiText *out, const CiKernels *kernels)
{
    Whole whole = {ci_loop_printer(out, kernels->loops), (CiKernels *)(uintptr_t)kernels};
    ci_kernels_visit(kernels, note_defined, whole.p.defined);
    ci_io_with_symbols(&whole.p.io, whole.p.defined, io_text, &whole);
}

static void
read_whole(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_io_with_symbols(&((Whole *)arg)->p.io, NULL, io_text, arg);
}

CiKernels *
ci_kernels_parse(CiContext *ctx, const char *text, const CiMachine *machine)
{
    Whole whole = {ci_loop_reader(ctx, text), CI_NEW(ctx, CiKernels)};
    whole.kernels->loops = whole.p.loops;
    whole.kernels->machine = machine;
    ci_lexer_run(ctx, &whole.p.io.lex, read_whole, &whole);
    return whole.kernels;
}

/* Without comments, which refusals and notes are. */
static const char *
without_comments(CiContext *ctx, const char *text)
{
    CiText out = ci_text_new(ctx);
    for (const char *line = text, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        end += *end == '\n';
        if (line[strspn(line, " ")] != '#')
            ci_text_add(&out, "%.*s", (int)(end - line), line);
    }
    return out.data;
}

void
ci_kernels_verify_text(const CiKernels *kernels)
{
    CiContext *ctx = kernels->loops->ctx;
    CiText once = ci_text_new(ctx), twice = ci_text_new(ctx);
    ci_kernels_print(&once, kernels);
    ci_kernels_print(&twice, ci_kernels_parse(ctx, once.data, kernels->machine));
    ci_io_require_same(ctx, "kernels", without_comments(ctx, once.data), twice.data);
}

/* ---- one kernel ---- */

static bool
is_used(const CiKernel *kernel, const CiBuffer *buffer)
{
    return buffer->kind == CI_BUFFER_scalar || ci_kernel_find_placement(kernel, buffer) ||
           ci_kernel_buffer_position(kernel, buffer) >= 0;
}

void
ci_kernels_print_alone(CiText *out, const CiKernels *kernels, const CiKernel *kernel)
{
    const CiLoops *whole = kernels->loops;
    CiKernel *list[] = {(CiKernel *)(uintptr_t)kernel};
    CiLoops loops = {.ctx = whole->ctx, .sym = whole->sym, .name = whole->name};
    CiKernels alone = {
        .loops = &loops, .machine = kernels->machine, .kernels = list, .nkernels = 1};
    int capacity = 0;
    for (int k = 0; k < whole->nbuffers; k++) {
        if (!is_used(kernel, whole->buffers[k]))
            continue;
        loops.ninputs += k < whole->ninputs;
        CI_PUSH(whole->ctx, loops.buffers, loops.nbuffers, capacity, whole->buffers[k]);
    }
    ci_kernels_print(out, &alone);
}
