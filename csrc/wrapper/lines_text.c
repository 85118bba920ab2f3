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
#include "ir/loop_parse.h"
#include "ir/text_common.h"
#include "wrapper/partition.h"
#include "wrapper/place.h"

#include <string.h>

/* ---- printing ---- */

static void
print_side(CiText *out, CiSide side)
{
    ci_text_add(out, side == CI_SIDE_host ? " on host" : " on %d", side - CI_SIDE_device);
}

static const CiBuffer *
original_of(const CiWrapper *w, const CiBuffer *copy)
{
    for (int b = 0; b < w->kernels->loops->nbuffers; b++)
        if (w->sides[w->side_of[copy->id]][b] == copy)
            return w->buffers[b];
    return copy;
}

static void
print_buffers(CiText *out, const CiWrapper *w)
{
    for (int b = w->kernels->loops->nbuffers; b < w->nbuffers; b++) {
        const CiBuffer *buffer = w->buffers[b];
        ci_text_indent(out);
        ci_text_add(out, "%s", buffer->name);
        if (b < w->first_pool) {
            ci_text_add(out, " copies %s", original_of(w, buffer)->name);
        } else {
            ci_text_add(out, ": ");
            ci_expr_print(out, buffer->sizes[0], CI_STYLE_text);
            ci_text_add(out, " bytes");
        }
        print_side(out, w->side_of[b]);
        ci_text_add(out, "\n");
    }
}

static void
print_line(CiText *out, const CiLine *line)
{
    const CiLineRow *row = ci_line_row(line->kind);
    out->indent -= ci_line_closes(line) ? 2 : 0;
    ci_text_indent(out);
    ci_text_add(out, ci_line_closes(line) ? "}" : "");
    if (row->block != CI_BLOCK_closes)
        ci_text_add(out, ci_line_closes(line) ? " %s" : "%s", row->name);
    ci_text_add(out, *row->text ? " " : "");
    ci_line_print(out, line, row->text, CI_STYLE_text);
    ci_text_add(out, line->loc.line ? "  " : "");
    ci_form_print_loc(out, line->loc);
    ci_text_add(out, ci_line_opens(line) ? " {\n" : "\n");
    out->indent += ci_line_opens(line) ? 2 : 0;
}

void
ci_wrapper_print(CiText *out, const CiWrapper *wrapper)
{
    ci_text_add(out, "lines ");
    ci_form_print_name(out, wrapper->kernels->loops->name);
    ci_text_add(out, " {\n");
    out->indent += 2;
    print_buffers(out, wrapper);
    for (int i = 0; i < wrapper->nlines; i++)
        print_line(out, &wrapper->lines[i]);
    out->indent -= 2;
    ci_text_line(out, "}");
}

/* ---- parsing ---- */

typedef struct Parser {
    CiLoopParser p; /* of the loops' buffers and symbols, and those made here */
    CiWrapper *w;
    CiMap *kernels; /* interned name -> CiKernel, in regions too */
    int depth, scopes[CI_MAX_SCOPE]; /* blocks, and the variables in scope where each begins */
} Parser;

static void
add_kernel(void *arg, const CiKernel *kernel)
{
    Parser *p = arg;
    ci_map_put(p->kernels, CI_KEY(ci_intern(p->w->ctx, kernel->name)), (void *)kernel);
}

static const CiKernel *
parse_kernel(Parser *p, bool is_call)
{
    CiLexer *lex = &p->p.lex;
    const CiKernel *kernel = lex->kind == CI_TOKEN_name ? ci_map_find(p->kernels, CI_KEY(lex->string)) : NULL;
    if (!kernel || (is_call ? !kernel->ext : !ci_kernel_has_loops(kernel)))
        ci_lexer_fail(lex, is_call ? "no library call is called that" : "no kernel with loops is called that");
    ci_lexer_next(lex);
    return kernel;
}

static CiSide
parse_side(Parser *p)
{
    CiLexer *lex = &p->p.lex;
    if (ci_lexer_accept(lex, "host"))
        return CI_SIDE_host;
    CiLexer at = *lex;
    int64_t number = ci_lexer_expect_int(lex);
    if (number < 0 || number >= p->w->nsides - CI_SIDE_device)
        ci_lexer_fail(&at, "there is no such device");
    return CI_SIDE_device + (CiSide)number;
}

static const CiExpr *
parse_symbol(Parser *p)
{
    CiLexer *lex = &p->p.lex, at = *lex;
    const CiExpr *symbol = ci_sym_find_symbol(p->w->kernels->loops->sym, ci_lexer_expect_name(lex));
    if (!symbol)
        ci_lexer_fail(&at, "the kernels have no such symbol");
    return symbol;
}

static void
parse_field(Parser *p, CiLine *line, CiLineField field)
{
    CiLexer *lex = &p->p.lex;
    void *at = (char *)line + field.offset;
    switch (field.type) {
    case CI_FIELD_buffer:
        *(const CiBuffer **)at = ci_loop_find_buffer(&p->p);
        break;
    case CI_FIELD_side:
        *(CiSide *)at = parse_side(p);
        break;
    case CI_FIELD_expr:
        *(const CiExpr **)at = ci_loop_parse_expr(&p->p);
        break;
    case CI_FIELD_symbol:
        line->symbol = parse_symbol(p);
        break;
    case CI_FIELD_int:
        *(int *)at = (int)ci_lexer_expect_int(lex);
        break;
    case CI_FIELD_kernel:
        line->kernel = parse_kernel(p, false);
        break;
    case CI_FIELD_call:
        line->call = lex->string;
        line->ext = parse_kernel(p, true)->ext;
        line->number = p->w->nexterns++;
        break;
    case CI_FIELD_range:
        line->symbol = ci_form_parse_range(p->p.loops->sym, lex, ci_lexer_expect_name(lex), &line->value);
        break;
    case CI_FIELD_turns:
        line->symbol = ci_loop_parse_variable(&p->p, &line->value);
        break;
    case CI_FIELD_parallel:
        line->is_parallel = ci_lexer_accept(lex, "parallel");
        break;
    case CI_FIELD_text:
        line->text = ci_form_parse_name(lex);
        break;
    }
}

/* Reads what ci_line_print prints. */
static void
parse_operands(Parser *p, CiLine *line, const char *pattern)
{
    CiContext *ctx = p->w->ctx;
    for (const char *at = pattern; *at; at += strspn(at, " ")) {
        size_t length = *at == '{' ? strcspn(at, "}") + 1 : *at == ',' ? 1 : strcspn(at, " ,{");
        if (*at == '{')
            parse_field(p, line, ci_line_field(ctx, at + 1, length - 2));
        else
            ci_lexer_expect(&p->p.lex, ci_copy_text(ctx, at, length));
        at += length;
    }
}

/* host_buf0 copies buf0 on host   pool0: 4096 bytes on 0 */
static void
parse_buffer(Parser *p)
{
    CiLexer *lex = &p->p.lex, at = *lex;
    CiWrapper *w = p->w;
    const char *name = ci_lexer_expect_name(lex);
    const CiBuffer *buffer = NULL, *of = NULL;
    const CiExpr *bytes = NULL;
    if (ci_lexer_accept(lex, "copies")) {
        of = ci_loop_find_buffer(&p->p);
    } else {
        ci_lexer_expect(lex, ":");
        bytes = ci_loop_parse_expr(&p->p);
        ci_lexer_expect(lex, "bytes");
    }
    ci_lexer_expect(lex, "on");
    CiSide side = parse_side(p);
    bool is_first = w->first_pool == w->nbuffers; /* no pool precedes it */
    if (of && is_first && of->id < w->kernels->loops->nbuffers) {
        buffer = ci_wrapper_buffer_on(w, of, side);
    } else if (bytes) {
        buffer = ci_wrapper_add_pool(w, bytes, side);
    }
    if (!buffer || strcmp(buffer->name, name) != 0 || ci_map_find(p->p.buffers, CI_KEY(name)))
        ci_lexer_fail(&at, "a copy or a pool is not called that here");
    ci_map_put(p->p.buffers, CI_KEY(name), (void *)buffer);
}

/* Brackets of blocks: where a line is within its block is its row's. */
static void
open_block(Parser *p, int outside)
{
    if (p->depth == CI_MAX_SCOPE)
        ci_lexer_fail(&p->p.lex, "more than %d blocks inside of each other", CI_MAX_SCOPE);
    ci_lexer_expect(&p->p.lex, "{");
    p->scopes[p->depth++] = outside;
}

static void
close_block(Parser *p)
{
    if (!p->depth)
        ci_lexer_fail(&p->p.lex, "no block is open here");
    ci_loop_leave_scope(&p->p, p->scopes[--p->depth]);
}

static CiLineKind
parse_kind(Parser *p)
{
    CiLexer *lex = &p->p.lex;
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
parse_line(Parser *p)
{
    CiWrapper *w = p->w;
    CiLexer start = p->p.lex;
    CiLine line = {.kind = parse_kind(p), .match = -1, .open = -1, .side = CI_SIDE_device};
    int outside = p->p.nscope;
    bool is_else = line.kind == CI_LINE_else;
    if (is_else != (ci_lexer_is(&start, "}") && line.kind != CI_LINE_end))
        ci_lexer_fail(&start, "only an else follows a block");
    if (line.kind == CI_LINE_test && !p->depth)
        ci_lexer_fail(&start, "a test is in a loop");
    if (ci_line_closes(&line)) {
        close_block(p);
        outside = p->p.nscope;
    }
    parse_operands(p, &line, ci_line_row(line.kind)->text);
    line.loc = ci_form_parse_loc(&p->p.lex);
    if (ci_line_opens(&line))
        open_block(p, outside);
    note_memory(w, &line);
    if (line.kind == CI_LINE_join)
        ci_wrapper_find_start(w, &line);
    CI_PUSH(w->ctx, w->lines, w->nlines, w->caplines, line);
}

static bool
is_buffer(const Parser *p)
{
    CiLexer ahead = p->p.lex;
    ci_lexer_next(&ahead);
    return ci_lexer_is(&ahead, ":") || ci_lexer_is(&ahead, "copies");
}

static void
parse_whole(CiContext *ctx, void *arg)
{
    Parser *p = arg;
    CiLexer *lex = &p->p.lex;
    (void)ctx;
    ci_lexer_expect(lex, "lines");
    if (strcmp(ci_form_parse_name(lex), p->w->kernels->loops->name) != 0)
        ci_lexer_fail(lex, "the kernels have another name");
    ci_lexer_expect(lex, "{");
    while (is_buffer(p))
        parse_buffer(p);
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
    Parser p = {.p = {.loops = loops, .buffers = ci_map_new(ctx)},
                .w = ci_wrapper_new(kernels, options, env),
                .kernels = ci_map_new(ctx)};
    CiWrapper *w = p.w;
    for (int b = 0; b < loops->nbuffers; b++)
        ci_map_put(p.p.buffers, CI_KEY(ci_intern(ctx, loops->buffers[b]->name)), loops->buffers[b]);
    ci_kernels_visit(kernels, add_kernel, &p);
    ci_lexer_init(&p.p.lex, ctx, text);
    ci_lexer_run(ctx, &p.p.lex, parse_whole, &p);
    ci_wrapper_match(w);
    ci_wrapper_verify(w);
    ci_wrapper_find_lives(w);
    w->partitions = w->machine->records ? ci_partition(w) : NULL;
    w->peak_bytes = ci_wrapper_peak_bytes(w, false, &is_known);
    return w;
}
