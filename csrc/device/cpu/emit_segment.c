/* The lines of one lane: values, in the order they are needed, and what becomes of them.
 *
 * Invariant: a value has one name, v<position>, wherever it is printed; within a segment it is
 * printed once. */
#include "device/cpu/emit_cpu.h"

#include <string.h>

static const char *
name_of(CiCpuEmitter *c, int value)
{
    return ci_format(c->ctx, "v%d", value);
}

const char *
ci_cpu_slot_name(CiCpuEmitter *c, const CiCpuStage *s, int value)
{
    return ci_format(c->ctx, "tile%d", s->slot[value]);
}

/* ops.def encloses each expression in parentheses; at the right of a = they only disturb. */
static const char *
without_parentheses(CiCpuEmitter *c, const char *text)
{
    size_t length = strlen(text);
    int depth = 0;
    for (size_t k = 0; k < length; k++) {
        depth += (text[k] == '(') - (text[k] == ')');
        if (depth == 0 && k + 1 < length)
            return text;
    }
    return length > 2 && text[0] == '(' ? ci_copy_text(c->ctx, text + 1, length - 2) : text;
}

/* A check has seen that the index is in range; but memory of the caller's may have been written to
 * since then, by another thread. What is out of range becomes 0: a wrong element, no wrong memory.
 * Where the check is beside it, the compiler drops this one. */
static void
declare_bind(CiCpuEmitter *c, const CiScalar *op, const char *text)
{
    ci_text_line(c->out, "const int64_t %s = (uint64_t)%s < (uint64_t)(%s) ? %s : 0;",
                 op->index->name, text, ci_emit_index_text(c->base, op->index->limit), text);
}

static void
declare(CiCpuEmitter *c, const CiCpuStage *s, int value, const char *text)
{
    const CiScalar *op = &s->code->values[value].op;
    text = without_parentheses(c, text);
    for (const char *at = text; (at = strstr(at, " ? ")) != NULL; at++)
        c->nchoices++;
    if (op->op == CI_OP_bind) /* whoever reads it writes the symbol */
        declare_bind(c, op, text);
    else
        ci_text_line(c->out, "%s%s v%d = %s;", s->is_settled[value] ? "" : "const ",
                     ci_emit_type(op->dtype), value, text);
    if (s->is_settled[value])
        ci_text_line(c->out, "CI_SETTLED(v%d);", value);
}

static void
print_plain_value(CiCpuEmitter *c, const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    if (op->op == CI_OP_pack) /* its store says it all */
        return;
    if (s->is_hidden[value]) {
        declare(c, s, value, ci_cpu_hide(c, op->value.i));
        return;
    }
    if (op->op == CI_OP_load) {
        declare(c, s, value, ci_cpu_load(c, op->buffer, op->index));
        return;
    }
    for (int a = 0; a < op->nargs; a++)
        names[a] = name_of(c, op->args[a]);
    CiText text = ci_text_new(c->ctx);
    ci_emit_scalar(
        c->base, &text, op,
        op->nargs ? s->code->values[op->args[op->op == CI_OP_where]].op.dtype : op->dtype, names);
    declare(c, s, value, text.data);
}

static void
print_single_math(CiCpuEmitter *c, const CiCpuStage *s, int value)
{
    const CiScalar *op = &s->code->values[value].op;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    for (int a = 0; a < op->nargs; a++)
        names[a] = name_of(c, op->args[a]);
    const char *text = ci_cpu_single_math(c, op->op, ci_dtype_compute(op->dtype), names);
    if (op->dtype == CI_DTYPE_f16)
        text = ci_format(c->ctx, "%s(%s)", ci_emit_use(c->base, "round_half", CI_DTYPE_f32), text);
    declare(c, s, value, text);
}

void
ci_cpu_emit_invariants(CiCpuEmitter *c, CiCpuStage *s, int arrays)
{
    for (int k = 0; k < s->code->nvalues; k++) {
        if (!s->is_invariant[k] || !s->code->values[k].is_needed)
            continue;
        if (ci_op_kind(s->code->values[k].op.op) == CI_OPKIND_math)
            print_single_math(c, s, k);
        else
            print_plain_value(c, s, k);
        if (s->slot[k] >= 0) {
            ci_text_line(c->out, "for (int64_t l = 0; l < %d; l++)", arrays);
            ci_text_line(c->out, "    tile%d[l] = v%d;", s->slot[k], k);
        }
    }
}

typedef struct Segment {
    CiCpuEmitter *c;
    CiCpuStage *s;
    int number;
    bool *is_printed;
    bool has_room; /* for all that this block can pack */
} Segment;

bool
ci_cpu_is_inline_scan(const CiCpuStage *s, int value)
{
    return s->lanes == CI_LANES_tile && ci_op_kind(s->code->values[value].op.op) == CI_OPKIND_scan;
}

static bool
comes_from_array(const CiCpuStage *s, int value, int segment)
{
    CiOpKind kind = ci_op_kind(s->code->values[value].op.op);
    bool is_boundary =
        kind == CI_OPKIND_math || (kind == CI_OPKIND_scan && s->lanes != CI_LANES_tile);
    return s->slot[value] >= 0 && (s->segment[value] < segment || is_boundary);
}

static void
print_slot_read(Segment *g, int value)
{
    declare(g->c, g->s, value, ci_format(g->c->ctx, "%s[l]", ci_cpu_slot_name(g->c, g->s, value)));
}

/* Lanes outside: the running value is per lane. */
static void
print_inline_scan(Segment *g, int value)
{
    CiCpuEmitter *c = g->c;
    const CiValue *scan = &g->s->code->values[value];
    const CiNest *nest = g->s->stage->nests[scan->nest];
    CiText text = ci_text_new(c->ctx);
    const char *state = ci_format(c->ctx, "scan%d[l]", scan->nest),
               *first = nest->axes[nest->naxes - 1].var->name;
    ci_text_add(&text, "%s ? ", first);
    ci_emit_combine(c->base, &text, nest->fold, scan->op.dtype, state,
                    name_of(c, scan->op.args[0]));
    ci_text_add(&text, " : v%d", scan->op.args[0]);
    declare(c, g->s, value, text.data);
    ci_text_line(c->out, "%s = v%d;", state, value);
}

static void
use_value(Segment *g, int value)
{
    CiCpuStage *s = g->s;
    const CiScalar *op = &s->code->values[value].op;
    if (s->is_invariant[value] || g->is_printed[value])
        return;
    g->is_printed[value] = true;
    if (comes_from_array(s, value, g->number)) {
        print_slot_read(g, value);
        return;
    }
    for (int a = 0; a < op->nargs; a++)
        if (s->code->values[op->args[a]].is_needed)
            use_value(g, op->args[a]);
    if (ci_cpu_is_inline_scan(s, value))
        print_inline_scan(g, value);
    else
        print_plain_value(g->c, s, value);
    if (s->slot[value] >= 0)
        ci_text_line(g->c->out, "%s[l] = v%d;", ci_cpu_slot_name(g->c, s, value), value);
}

/* What is there, combined with the value. */
static const char *
combined_value(CiCpuEmitter *c, const CiNest *nest, int value)
{
    const char *old = ci_format(c->ctx, "old%d", value);
    const char *names[2] = {old, name_of(c, value)};
    CiText text = ci_text_new(c->ctx);
    ci_text_line(c->out, "const %s %s = %s;", ci_emit_type(nest->target->dtype), old,
                 ci_cpu_load(c, nest->target, nest->store));
    ci_emit_pointwise(c->base, &text, nest->combine, nest->target->dtype, names);
    return text.data;
}

/* Nobody can foresee a mask: each value is stored, and the next takes its place where the mask is
 * false; only behind the last true one there is none. */
static void
print_pack(CiCpuEmitter *c, const CiNest *nest, const CiScalar *op, bool has_room)
{
    if (!has_room)
        ci_text_line(c->out, "if (%s < %s)", op->index->name,
                     ci_emit_index_text(c->base, op->index->limit));
    c->out->indent += has_room ? 0 : 4;
    ci_cpu_emit_store(c, nest->target, nest->store, op->dtype, name_of(c, op->args[0]));
    c->out->indent -= has_room ? 0 : 4;
    /* A byte of the caller's that is no bool moves by no more than one either. */
    ci_text_line(c->out, "%s += %s & 1;", op->index->name, name_of(c, op->args[1]));
}

void
ci_cpu_emit_sink(CiCpuEmitter *c, const CiCpuStage *s, int n, bool has_room)
{
    const CiNest *nest = s->stage->nests[n];
    int value = s->code->results[n];
    const CiScalar *op = &s->code->values[value].op;
    if (op->op == CI_OP_pack) {
        print_pack(c, nest, op, has_room);
        return;
    }
    const char *name = nest->is_combined ? combined_value(c, nest, value) : name_of(c, value);
    ci_cpu_emit_store(c, nest->target, nest->store, op->dtype, name);
}

static void
print_sinks(Segment *g, bool folds_here)
{
    CiCpuStage *s = g->s;
    int fold = 0;
    for (int n = 0; n < s->stage->nnests; n++) {
        const CiNest *nest = s->stage->nests[n];
        int value = s->code->results[n];
        bool is_fold = ci_nest_is_fold(nest);
        const CiCpuFold *own = is_fold ? &s->folds[fold++] : NULL;
        if (s->segment[value] != g->number || !s->code->values[value].is_needed)
            continue;
        if (is_fold && !folds_here)
            continue;
        use_value(g, value);
        if (is_fold)
            ci_cpu_emit_fold_step(g->c, s, own, name_of(g->c, value));
        else
            ci_cpu_emit_sink(g->c, s, n, g->has_room);
    }
}

char *
ci_cpu_segment_text(CiCpuEmitter *c, CiCpuStage *s, int number, bool folds_here, bool has_room,
                    int indent)
{
    Segment g = {c, s, number, CI_NEW_ARRAY(c->ctx, bool, s->code->nvalues + 1), has_room};
    CiText text = ci_text_new(c->ctx), *saved = c->out;
    text.indent = indent;
    c->out = &text;
    for (int k = 0; k < s->code->nvalues; k++) {
        bool is_here = s->code->values[k].is_needed && !s->is_invariant[k] && !s->is_cheap[k] &&
                       s->segment[k] == number;
        if (is_here && !comes_from_array(s, k, number))
            use_value(&g, k);
    }
    print_sinks(&g, folds_here);
    c->out = saved;
    return text.data;
}
