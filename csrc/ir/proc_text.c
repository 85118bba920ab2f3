/* Procs as text. Invariant: parse(print(procs)) prints the same text. */
#include "ir/loop_text.h"
#include "ir/proc_private.h"

/* ---- procs ---- */

static void
io_axes(CiTextIo *f, CiProcHead *head)
{
    int capacity = 0;
    for (int k = 0; ci_io_more(f, k, head->naxes, NULL); k++) {
        CiPointAxis axis = f->out ? head->axes[k] : (CiPointAxis){0};
        axis.var = ci_io_word(f, axis.var);
        if (ci_io_flag(f, " by ", axis.tile != 0))
            axis.tile = ci_io_count(f, axis.tile, 0);
        if (!f->out)
            CI_PUSH(f->ctx, head->axes, head->naxes, capacity, axis);
    }
}

/* over i0 by 64, i1 by 8 in lanes parts [46] of [65536] work [65536]: what passes have still to do. */
static void
io_head(CiTextIo *f, CiProc *proc)
{
    CiProcHead *head = &proc->head;
    proc->is_finish = ci_io_flag(f, " finishes ", proc->is_finish);
    if (proc->is_finish)
        head->kernel = ci_io_word(f, head->kernel);
    head->is_tree = ci_io_flag(f, " tree", head->is_tree);
    if (ci_io_flag(f, " template ", head->kind != CI_TEMPLATE_none))
        head->kind =
            (CiTemplate)ci_io_choice(f, ci_template_names, CI_TEMPLATE_COUNT, head->kind, "template");
    if (ci_io_flag(f, " over ", head->naxes > 0))
        io_axes(f, head);
    head->has_lanes = ci_io_flag(f, " in lanes", head->has_lanes);
    if (ci_io_flag(f, " rows [", head->row != NULL)) {
        ci_io_expr(f, "", &head->row, "] up to ");
        head->short_row = ci_io_int(f, head->short_row);
    }
    head->is_chained = ci_io_flag(f, " chained", head->chunks && head->is_chained);
    head->totals_first = head->is_chained && ci_io_flag(f, " totals first", head->totals_first);
    ci_io_if(f, " parts [", &head->chunks, "]");
    if (head->chunks)
        ci_io_if(f, " of [", &head->chunk, "]");
    else if (head->is_chained)
        ci_io_text(f, " parts [");
    ci_io_if(f, " work [", &head->unit_work, "]");
}

static void
io_list(CiTextIo *f, const char *before, const CiExpr ***exprs, int *count, int *capacity)
{
    if (!ci_io_flag(f, before, *count > 0))
        return;
    for (int k = 0; ci_io_more(f, k, *count, NULL); k++) {
        const CiExpr *e = f->out ? (*exprs)[k] : NULL;
        ci_io_expr(f, "", &e, "");
        if (!f->out)
            CI_PUSH(f->ctx, *exprs, *count, *capacity, e);
    }
}

static void
io_proc(CiProcIo *p, CiProc *proc)
{
    CiTextIo *f = &p->io;
    ci_io_indent(f);
    ci_io_text(f, "proc ");
    const char *name = ci_io_word(f, f->out ? proc->name : NULL);
    if (!f->out)
        proc = p->b.proc = ci_procs_add(p->b.procs, name);
    p->nmemories = f->nscope = 0;
    ci_io_text(f, "(");
    bool has_params = f->out || !(ci_lexer_is(&f->lex, ")") || ci_lexer_is(&f->lex, ";"));
    for (int k = 0; has_params && ci_io_more(f, k, proc->nparams, NULL); k++) {
        CiMemory *param = ci_proc_io_declaration(p, f->out ? proc->params[k] : NULL);
        if (!f->out)
            CI_PUSH(f->ctx, proc->params, proc->nparams, proc->capparams, param);
    }
    io_list(f, "; ", &proc->sizes, &proc->nsizes, &proc->capsizes);
    ci_io_text(f, ")");
    io_list(f, " given ", &proc->facts, &proc->nfacts, &proc->capfacts);
    io_head(f, proc);
    ci_io_enter(f, " {");
    proc->head.locs = ci_io_locs(f, proc->head.locs, &proc->head.nlocs);
    ci_io_text(f, "\n");
    ci_proc_io_block(p, &proc->body);
    ci_io_leave(f, "}\n");
}

/* ---- all ---- */

static void
io_text(void *arg)
{
    CiProcIo *p = arg;
    CiTextIo *f = &p->io;
    CiProcs *procs = p->b.procs;
    ci_io_text(f, "procs ");
    procs->name = ci_io_name(f, procs->name);
    ci_io_enter(f, " {\n");
    for (int k = 0; f->out ? k < procs->nprocs : !ci_lexer_is(&f->lex, "}"); k++)
        io_proc(p, f->out ? procs->procs[k] : NULL);
    ci_io_end(f);
}

void
ci_procs_print(CiText *out, const CiProcs *procs)
{
    CiProcIo p = {.io = ci_io_printer(procs->ctx, procs->sym, out),
                    .b.procs = (CiProcs *)(uintptr_t)procs};
    ci_io_with_symbols(&p.io, NULL, io_text, &p);
}

static void
read_procs(CiContext *ctx, void *arg)
{
    (void)ctx;
    ci_io_with_symbols(&((CiProcIo *)arg)->io, NULL, io_text, arg);
}

CiProcs *
ci_procs_parse(CiContext *ctx, const char *text)
{
    CiSym *sym = ci_sym_new(ctx);
    CiProcIo p = {.io = ci_io_reader(ctx, sym, text),
                    .b = {.ctx = ctx, .sym = sym, .procs = ci_procs_new(ctx, sym, "")}};
    ci_lexer_run(ctx, &p.io.lex, read_procs, &p);
    return p.b.procs;
}

void
ci_procs_verify_text(const CiProcs *procs)
{
    CiText once = ci_text_new(procs->ctx), twice = ci_text_new(procs->ctx);
    ci_procs_print(&once, procs);
    ci_procs_print(&twice, ci_procs_parse(procs->ctx, once.data));
    ci_io_require_same(procs->ctx, "procs", once.data, twice.data);
}
