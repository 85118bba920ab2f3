/* The lines as text, one each, that reads back: the operands as the row's pattern has them, blocks in
 * braces. Before the lines are copies of buffers on other sides, and pools.
 *
 *   lines f {
 *     host_buf0 copies buf0 on host
 *     pool0: 4096 bytes on 0
 *     symbol s0 of in0 axis 0
 *     part buf0 of pool0 at 64 on 0, 4*s0 bytes
 *     launch k0 on 0  @net.py:7
 *     return
 *   }
 */
#include "ir/loop_text.h"
#include "wrapper/partition.h"
#include "wrapper/allocate.h"

#include <string.h>

typedef struct LinesIo {
    CiLoopIo p; /* of the loops' buffers and symbols, and those made here */
    CiWrapper *w;
    CiMap *kernels; /* read: interned name -> CiKernel, in regions too */
    int depth, scopes[CI_MAX_SCOPE]; /* blocks, and the variables in scope where each begins */
} LinesIo;

/* ---- fields ---- */

static void
add_kernel(void *arg, const CiKernel *kernel)
{
    LinesIo *p = arg;
    ci_map_put(p->kernels, CI_KEY(ci_intern(p->w->ctx, kernel->name)), (void *)kernel);
}

static const CiKernel *
io_kernel(LinesIo *p, const char *name, const CiKernel *kernel, bool is_call)
{
    CiLexer at = p->p.io.lex;
    name = ci_io_word(&p->p.io, name);
    if (p->p.io.out)
        return kernel;
    kernel = ci_map_find(p->kernels, CI_KEY(name));
    if (!kernel || (is_call ? !kernel->ext : !ci_kernel_has_loops(kernel)))
        ci_lexer_fail(&at, is_call ? "no library call is called that" : "no kernel with loops is called that");
    return kernel;
}

static CiSide
io_side(LinesIo *p, CiSide side)
{
    CiTextIo *f = &p->p.io;
    CiLexer at = f->lex;
    if (ci_io_flag(f, "host", side == CI_SIDE_host))
        return CI_SIDE_host;
    int64_t number = ci_io_int(f, (int)side - CI_SIDE_device);
    if (number < 0 || number >= p->w->nsides - CI_SIDE_device)
        ci_lexer_fail(&at, "there is no such device");
    return CI_SIDE_device + (CiSide)number;
}

static const CiExpr *
io_symbol(CiTextIo *f, const CiExpr *symbol)
{
    CiLexer at = f->lex;
    if (f->out) {
        ci_io_expr(f, "", &symbol, "");
        return symbol;
    }
    symbol = ci_sym_find_symbol(f->sym, ci_io_word(f, NULL));
    if (!symbol)
        ci_lexer_fail(&at, "the kernels have no such symbol");
    return symbol;
}

static void
io_field(LinesIo *p, CiLine *line, CiLineField field)
{
    CiTextIo *f = &p->p.io;
    void *at = (char *)line + field.offset;
    switch (field.type) {
    case CI_FIELD_buffer:
        *(CiBuffer **)at = ci_loop_io_buffer(&p->p, *(CiBuffer **)at);
        break;
    case CI_FIELD_side:
        *(CiSide *)at = io_side(p, *(CiSide *)at);
        break;
    case CI_FIELD_expr:
        ci_io_expr(f, "", at, "");
        break;
    case CI_FIELD_symbol:
        line->symbol = io_symbol(f, line->symbol);
        break;
    case CI_FIELD_int:
        *(int *)at = (int)ci_io_int(f, *(int *)at);
        break;
    case CI_FIELD_kernel:
        line->kernel = io_kernel(p, f->out ? line->kernel->name : NULL, line->kernel, false);
        break;
    case CI_FIELD_call:
        if (!f->out) {
            line->call = f->lex.string;
            line->number = p->w->nexterns++;
            line->ext = io_kernel(p, NULL, NULL, true)->ext;
        } else {
            ci_io_word(f, line->call);
        }
        break;
    case CI_FIELD_range:
        line->symbol = ci_io_bounded(f, line->symbol, &line->value);
        break;
    case CI_FIELD_iterations:
        line->symbol = ci_loop_io_variable(&p->p, line->symbol, &line->value);
        break;
    case CI_FIELD_parallel:
        line->is_parallel = ci_io_flag(f, " parallel", line->is_parallel);
        break;
    case CI_FIELD_text:
        line->text = ci_io_string(f, line->text);
        break;
    }
}

static void
io_operands(LinesIo *p, CiLine *line)
{
    CiContext *ctx = p->w->ctx;
    for (const char *at = ci_line_row(line->kind)->text; *at;) {
        size_t length = *at == '{' ? strcspn(at, "}") + 1 : strcspn(at, "{");
        if (*at == '{')
            io_field(p, line, ci_line_field(ctx, at + 1, length - 2));
        else
            ci_io_text(&p->p.io, ci_copy_text(ctx, at, length));
        at += length;
    }
}

/* ---- buffers ---- */

static const CiBuffer *
original_of(const CiWrapper *w, const CiBuffer *copy)
{
    for (int b = 0; b < w->kernels->loops->nbuffers; b++)
        if (w->sides[w->side_of[copy->id]][b] == copy)
            return w->buffers[b];
    return copy;
}

/* host_buf0 copies buf0 on host   pool0: 4096 bytes on 0 */
static void
io_buffer(LinesIo *p, const CiBuffer *buffer)
{
    CiTextIo *f = &p->p.io;
    CiWrapper *w = p->w;
    CiLexer at = f->lex;
    const CiBuffer *of = NULL;
    const CiExpr *bytes = f->out ? buffer->sizes[0] : NULL;
    ci_io_indent(f);
    const char *name = ci_io_word(f, f->out ? buffer->name : NULL);
    if (ci_io_flag(f, " copies ", f->out && buffer->id < w->first_pool))
        of = ci_loop_io_buffer(&p->p, f->out ? (CiBuffer *)(uintptr_t)original_of(w, buffer) : NULL);
    else
        ci_io_expr(f, ": ", &bytes, " bytes");
    ci_io_text(f, " on ");
    CiSide side = io_side(p, f->out ? w->side_of[buffer->id] : CI_SIDE_host);
    ci_io_text(f, "\n");
    if (f->out)
        return;
    bool is_first = w->first_pool == w->nbuffers; /* no pool precedes it */
    if (of && is_first && of->id < w->kernels->loops->nbuffers)
        buffer = ci_wrapper_buffer_on(w, of, side);
    else if (!of)
        buffer = ci_wrapper_add_pool(w, bytes, side);
    if (!buffer || strcmp(buffer->name, name) != 0 || ci_map_find(p->p.buffers, CI_KEY(name)))
        ci_lexer_fail(&at, "a copy or a pool is not called that here");
    ci_map_put(p->p.buffers, CI_KEY(name), (void *)buffer);
}

/* ---- printing ---- */

static void
print_line(LinesIo *p, CiLine *line)
{
    CiTextIo *f = &p->p.io;
    const CiLineRow *row = ci_line_row(line->kind);
    if (ci_line_closes(line))
        ci_io_leave(f, row->block == CI_BLOCK_closes ? "}" : "} ");
    else
        ci_io_indent(f);
    ci_io_text(f, row->block == CI_BLOCK_closes ? "" : row->name);
    ci_io_text(f, *row->text ? " " : "");
    io_operands(p, line);
    ci_io_loc(f, "  ", line->loc);
    if (ci_line_opens(line))
        ci_io_enter(f, " {");
    ci_io_text(f, "\n");
}

void
ci_wrapper_print(CiText *out, const CiWrapper *wrapper)
{
    CiLoops *loops = wrapper->kernels->loops;
    LinesIo p = {.p = {.io = ci_io_printer(wrapper->ctx, loops->sym, out), .loops = loops},
                   .w = (CiWrapper *)(uintptr_t)wrapper};
    CiTextIo *f = &p.p.io;
    ci_io_text(f, "lines ");
    ci_io_name(f, loops->name);
    ci_io_enter(f, " {\n");
    for (int b = loops->nbuffers; b < wrapper->nbuffers; b++)
        io_buffer(&p, wrapper->buffers[b]);
    for (int i = 0; i < wrapper->nlines; i++)
        print_line(&p, &wrapper->lines[i]);
    ci_io_leave(f, "}\n");
}

/* ---- reading ---- */

/* Brackets of blocks: where a line is within its block is its row's. */
static void
open_block(LinesIo *p, int outside)
{
    if (p->depth == CI_MAX_SCOPE)
        ci_lexer_fail(&p->p.io.lex, "more than %d blocks inside of each other", CI_MAX_SCOPE);
    ci_lexer_expect(&p->p.io.lex, "{");
    p->scopes[p->depth++] = outside;
}

static void
close_block(LinesIo *p)
{
    if (!p->depth)
        ci_lexer_fail(&p->p.io.lex, "no block is open here");
    ci_io_leave_scope(&p->p.io, p->scopes[--p->depth]);
}

static CiLineKind
parse_kind(LinesIo *p)
{
    CiLexer *lex = &p->p.io.lex;
    if (ci_lexer_accept(lex, "}") && !ci_lexer_is(lex, "else"))
        return CI_LINE_end;
    for (int kind = 0; kind < CI_LINE_COUNT; kind++)
        if (ci_line_row((CiLineKind)kind)->block != CI_BLOCK_closes &&
            ci_lexer_accept(lex, ci_line_row((CiLineKind)kind)->name))
            return (CiLineKind)kind;
    ci_lexer_fail(lex, "no line begins like that");
}

/* Notes whose part the line's buffer is, and which device reaches it by itself. */
static void
note_memory(CiWrapper *w, const CiLine *line)
{
    if (line->kind == CI_LINE_part)
        w->pool_of[line->buffer->id] = line->other;
    if (line->kind == CI_LINE_reuse)
        w->pool_of[line->buffer->id] = w->pool_of[line->other->id];
    if (line->kind == CI_LINE_copy_out_start)
        w->pinned[line->buffer->id] = ci_wrapper_side(w, line->other);
    if (line->kind == CI_LINE_mark) {
        w->pinned[line->buffer->id] = CI_SIDE_device + line->buffer->device;
        w->side_of[line->buffer->id] = CI_SIDE_host;
    }
}

static void
parse_line(LinesIo *p)
{
    CiWrapper *w = p->w;
    CiLexer start = p->p.io.lex;
    CiLine line = {.kind = parse_kind(p), .match = -1, .open = -1, .side = CI_SIDE_device};
    int outside = p->p.io.nscope;
    bool is_else = line.kind == CI_LINE_else;
    if (is_else != (ci_lexer_is(&start, "}") && line.kind != CI_LINE_end))
        ci_lexer_fail(&start, "only an else follows a block");
    if (line.kind == CI_LINE_test && !p->depth)
        ci_lexer_fail(&start, "a test is in a loop");
    if (ci_line_closes(&line)) {
        close_block(p);
        outside = p->p.io.nscope;
    }
    io_operands(p, &line);
    line.loc = ci_io_loc(&p->p.io, "", line.loc);
    if (ci_line_opens(&line))
        open_block(p, outside);
    note_memory(w, &line);
    if (line.kind == CI_LINE_join)
        ci_wrapper_find_start(w, &line);
    CI_PUSH(w->ctx, w->lines, w->nlines, w->caplines, line);
}

static bool
is_buffer(const LinesIo *p)
{
    CiLexer ahead = p->p.io.lex;
    ci_lexer_next(&ahead);
    return ci_lexer_is(&ahead, ":") || ci_lexer_is(&ahead, "copies");
}

static void
parse_whole(CiContext *ctx, void *arg)
{
    LinesIo *p = arg;
    CiLexer *lex = &p->p.io.lex;
    (void)ctx;
    ci_lexer_expect(lex, "lines");
    if (strcmp(ci_io_name(&p->p.io, NULL), p->w->kernels->loops->name) != 0)
        ci_lexer_fail(lex, "the kernels have another name");
    ci_lexer_expect(lex, "{");
    while (is_buffer(p))
        io_buffer(p, NULL);
    while (p->depth || !ci_lexer_is(lex, "}"))
        parse_line(p);
    ci_lexer_expect(lex, "}");
    if (lex->kind != CI_TOKEN_end)
        ci_lexer_fail(lex, "unexpected text after the end");
}

CiWrapper *
ci_wrapper_parse(const CiKernels *kernels, const CiOptions *options, const CiShapeEnv *env,
                 const char *text)
{
    CiLoops *loops = kernels->loops;
    CiContext *ctx = loops->ctx;
    bool is_known = true;
    LinesIo p = {.p = {.io = ci_io_reader(ctx, loops->sym, text),
                      .loops = loops,
                      .buffers = ci_map_new(ctx)},
                .w = ci_wrapper_new(kernels, options, env),
                .kernels = ci_map_new(ctx)};
    CiWrapper *w = p.w;
    for (int b = 0; b < loops->nbuffers; b++)
        ci_map_put(p.p.buffers, CI_KEY(ci_intern(ctx, loops->buffers[b]->name)), loops->buffers[b]);
    ci_kernels_visit(kernels, add_kernel, &p);
    ci_lexer_run(ctx, &p.p.io.lex, parse_whole, &p);
    ci_wrapper_match(w);
    ci_wrapper_verify(w);
    ci_wrapper_find_live_ranges(w);
    w->partitions = w->machine->records ? ci_partition(w) : NULL;
    w->peak_bytes = ci_wrapper_peak_bytes(w, false, &is_known);
    return w;
}
