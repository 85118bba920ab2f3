/* Lets and stores in lanes: vector instructions where an operation has them, else a loop over the
 * lanes. */
#include "target/c/c.h"

static void
declare(CiCPrinter *p, const CiStmt *let, const char *text)
{
    ci_text_line(p->out, "const %s v%d = %s;",
                 let->type.mask ? ci_c_mask_type(p, let->type.mask, let->type.lanes)
                                : ci_c_type(p, let->type.dtype, let->type.lanes),
                 let->value, text);
}

/* The text of a bool is a mask as wide as the operands. */
static void
declare_computed(CiCPrinter *p, const CiStmt *let, const char *text)
{
    if (let->type.dtype == CI_DTYPE_bool && !let->type.mask)
        text = ci_c_bytes_of_mask(p, ci_stmt_operand_bytes(p->proc, let), let->type.lanes, text);
    declare(p, let, text);
}

/* ---- operations ---- */

static void
print_cast(CiCPrinter *p, const CiStmt *let)
{
    CiDtype given = ci_c_type_of(p, let->args[0]).dtype, from = ci_dtype_compute(given),
            to = ci_dtype_compute(let->type.dtype);
    int lanes = let->type.lanes;
    const char *name = ci_c_name(p, let->args[0]);
    if (to == from) {
        name = to == CI_DTYPE_bool && !let->type.mask ? ci_c_as_bytes(p, let->args[0]) : name;
    } else if (to == CI_DTYPE_bool) {
        declare_computed(p, let, ci_format(p->ctx, "(%s != 0)", name));
        return;
    } else if (from == CI_DTYPE_bool) {
        name = ci_c_convert(p, CI_DTYPE_u8, to, lanes, ci_c_as_bytes(p, let->args[0]));
    } else {
        name = ci_c_convert(p, from, to, lanes, name);
        name = ci_c_cut_int(p, from, to, lanes, name);
    }
    declare(p, let, given == let->type.dtype ? name : ci_c_rounded(p, let->type.dtype, lanes, name));
}

static void
print_where(CiCPrinter *p, const CiStmt *let)
{
    int lanes = let->type.lanes, width = ci_c_width(let->type.dtype);
    const char *yes = ci_c_name(p, let->args[1]), *no = ci_c_name(p, let->args[2]);
    if (let->type.dtype == CI_DTYPE_bool) {
        width = ci_stmt_operand_bytes(p->proc, let);
        yes = ci_c_as_mask(p, let->args[1], width);
        no = ci_c_as_mask(p, let->args[2], width);
    }
    declare_computed(p, let,
                     ci_c_where(p, let->type.dtype, lanes, ci_c_as_mask(p, let->args[0], width), yes, no));
}

static void
print_vector_pointwise(CiCPrinter *p, const CiStmt *let)
{
    CiDtype operand = ci_c_type_of(p, let->args[0]).dtype;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    int width = ci_stmt_operand_bytes(p->proc, let);
    for (int a = 0; a < let->nargs; a++)
        names[a] = operand == CI_DTYPE_bool ? ci_c_as_mask(p, let->args[a], width)
                                            : ci_c_name(p, let->args[a]);
    const char *text = ci_c_pointwise(p, let->op, operand, let->type.lanes, names);
    bool is_rounded = ci_op_rounds(let->op, operand);
    declare_computed(p, let, is_rounded ? ci_c_rounded(p, operand, let->type.lanes, text) : text);
}

/* ---- lane by lane ---- */

static void
open_lanes(CiCPrinter *p, const CiStmt *stmt, int lanes)
{
    p->has_loops_left = true;
    if (stmt->live && stmt->kind == CI_STMT_store) {
        ci_text_open(p->out, "for (int64_t l = 0; l < %d && l < %s; l++) {", lanes,
                     ci_emit_index_text(p->base, stmt->live));
        return;
    }
    ci_text_open(p->out, "for (int64_t l = 0; l < %d; l++) {", lanes);
    if (stmt->live)
        ci_text_line(p->out, "const int64_t k = l < %s ? l : 0;",
                     ci_emit_index_text(p->base, stmt->live));
}

/* The number of a lane: of the first one where it is not live. */
static const char *
lane_name(const CiStmt *stmt)
{
    return stmt->live && stmt->kind != CI_STMT_store ? "k" : "l";
}

/* One lane of a value, as a scalar. */
static const char *
lane_of(CiCPrinter *p, int value, const char *lane)
{
    CiType type = ci_c_type_of(p, value);
    if (type.lanes == 1)
        return ci_c_name(p, value);
    if (ci_dtype_class(type.dtype) == CI_CLASS_complex)
        return ci_format(p->ctx, "(%s){v%d.re[%s], v%d.im[%s]}", ci_emit_type(type.dtype), value,
                         lane, value, lane);
    return ci_format(p->ctx, type.dtype == CI_DTYPE_bool ? "v%d[%s] != 0" : "v%d[%s]", value, lane);
}

static void
set_lane(CiCPrinter *p, const CiStmt *let, const char *text)
{
    if (ci_dtype_class(let->type.dtype) == CI_CLASS_complex) {
        ci_text_line(p->out, "const %s y = %s;", ci_emit_type(let->type.dtype), text);
        ci_text_line(p->out, "v%d.re[l] = y.re, v%d.im[l] = y.im;", let->value, let->value);
    } else {
        ci_text_line(p->out, "v%d[l] = %s;", let->value, text);
    }
}

static void
open_lane_let(CiCPrinter *p, const CiStmt *let)
{
    ci_text_line(p->out, "%s v%d;", ci_c_type(p, let->type.dtype, let->type.lanes), let->value);
    open_lanes(p, let, let->type.lanes);
}

static void
print_lane_operation(CiCPrinter *p, const CiStmt *let)
{
    static const char *const letters[CI_MAX_OPERANDS] = {"a", "b", "c", "d"};
    CiScalar op = {.op = let->op, .dtype = let->type.dtype, .nargs = let->nargs};
    open_lane_let(p, let);
    for (int a = 0; a < let->nargs; a++)
        ci_text_line(p->out, "const %s %s = %s;", ci_emit_type(ci_c_type_of(p, let->args[a]).dtype),
                     letters[a], lane_of(p, let->args[a], lane_name(let)));
    CiText text = ci_text_new(p->ctx);
    CiDtype operand = ci_c_type_of(p, let->args[let->op == CI_OP_where]).dtype;
    ci_emit_scalar(p->base, &text, &op, operand, letters);
    bool is_cast = let->op == CI_OP_cast;
    set_lane(p, let, is_cast ? ci_c_cast(p, operand, op.dtype, letters[0]) : text.data);
    ci_text_close(p->out);
}

static void
print_vector_math(CiCPrinter *p, const CiStmt *let)
{
    CiDtype dtype = ci_dtype_compute(let->type.dtype);
    const char *call = ci_c_math(p, let->op, dtype, let->type.lanes);
    const char *text =
        ci_format(p->ctx, "%s(v%d%s", call, let->args[0], let->nargs > 1 ? ", " : ")");
    if (let->nargs > 1)
        text = ci_format(p->ctx, "%sv%d)", text, let->args[1]);
    declare(p, let, ci_c_rounded(p, let->type.dtype, let->type.lanes, text));
}

/* ---- memory ---- */

/* Symbols that have a value in each lane, in this one. */
static void
declare_lane_symbols(CiCPrinter *p, const CiExpr *e, const char *lane)
{
    for (int k = 0; k < e->nsymbols; k++) {
        const CiStmt *bind = ci_map_find(p->lane_symbols, CI_KEY(e->symbols[k]));
        if (bind)
            ci_text_line(p->out, "const int64_t %s = v%d[%s];", e->symbols[k]->name, bind->value,
                         lane);
    }
}

static bool
is_contiguous(const CiCPrinter *p, const CiAccess *at)
{
    return !at->stride && !ci_c_has_lanes(p, at->index) &&
           ci_dtype_class(at->memory->dtype) != CI_CLASS_complex;
}

/* Elements a stride apart, of the memory's own type: the function that moves them, or NULL. */
static const char *
strided_function(CiCPrinter *p, const CiStmt *stmt, int lanes)
{
    const CiAccess *at = &stmt->at;
    if (!at->stride || ci_c_has_lanes(p, at->index))
        return NULL;
    return ci_c_strided(p, at->memory->dtype, lanes, stmt->live != NULL, stmt->kind == CI_STMT_store);
}

/* memory + index, stride */
static const char *
strided_address(CiCPrinter *p, const CiStmt *stmt)
{
    return ci_format(p->ctx, "%s, %s", ci_c_pointer(p, stmt),
                     ci_emit_index_text(p->base, stmt->at.stride));
}

static const char *
live_argument(CiCPrinter *p, const CiStmt *stmt)
{
    return stmt->live ? ci_format(p->ctx, ", %s", ci_emit_index_text(p->base, stmt->live)) : "";
}

/* The element of one lane. */
static const char *
lane_element(CiCPrinter *p, const CiStmt *stmt)
{
    const CiAccess *at = &stmt->at;
    const char *lane = lane_name(stmt);
    declare_lane_symbols(p, at->index, lane);
    const char *index = ci_emit_index_text(p->base, at->index);
    if (!at->stride || !ci_expr_equals_const(at->stride, 0))
        index = ci_format(p->ctx, "%s + %s * (%s)", index, lane,
                          at->stride ? ci_emit_index_text(p->base, at->stride) : "1");
    return ci_format(p->ctx, "%s[%s]", ci_c_memory(p, at->memory), index);
}

/* The type of a vector's lanes in memory. */
static CiDtype
stored_as(CiDtype dtype)
{
    return ci_dtype_is_narrow(dtype) ? CI_DTYPE_u16 : dtype;
}

static void
print_load(CiCPrinter *p, const CiStmt *let)
{
    const CiAccess *at = &let->at;
    CiDtype dtype = stored_as(at->memory->dtype);
    int lanes = let->type.lanes;
    if (at->memory->lanes > 1) {
        declare(p, let, ci_c_element(p, at->memory, at->index));
    } else if (is_contiguous(p, at)) {
        const char *at_first = ci_c_pointer(p, let);
        const char *loaded = let->live ? ci_c_load_part(p, dtype, lanes, at_first, let->live)
                                       : ci_format(p->ctx, "*(const %s_u *)(%s)",
                                                   ci_c_type(p, dtype, lanes), at_first);
        declare(p, let, ci_c_widened(p, at->memory->dtype, lanes, loaded));
    } else if (strided_function(p, let, lanes)) {
        declare(p, let,
                ci_format(p->ctx, "%s(%s%s)", strided_function(p, let, lanes), strided_address(p, let),
                          live_argument(p, let)));
    } else {
        open_lane_let(p, let);
        CiText text = ci_text_new(p->ctx);
        ci_emit_widen(p->base, &text, at->memory->dtype, lane_element(p, let));
        set_lane(p, let, text.data);
        ci_text_close(p->out);
    }
}

/* One after another: the element of one may be that of the next. */
static void
print_lane_store(CiCPrinter *p, const CiStmt *store)
{
    CiDtype dtype = store->at.memory->dtype;
    CiText text = ci_text_new(p->ctx), made = ci_text_new(p->ctx);
    open_lanes(p, store, ci_c_type_of(p, store->args[0]).lanes);
    const char *element = lane_element(p, store), *names[2] = {"old", "x"};
    ci_text_line(p->out, "const %s x = %s;", ci_emit_type(dtype), lane_of(p, store->args[0], "l"));
    ci_text_add(&made, "x");
    if (store->op != CI_OP_none) {
        ci_emit_widen(p->base, &text, dtype, element);
        ci_text_line(p->out, "const %s old = %s;", ci_emit_type(dtype), text.data);
        made = ci_text_new(p->ctx);
        ci_emit_pointwise(p->base, &made, store->op, dtype, names);
        ci_text_line(p->out, "const %s y = %s;", ci_emit_type(dtype), made.data);
    }
    CiText stored = ci_text_new(p->ctx);
    ci_emit_narrow(p->base, &stored, dtype, store->op == CI_OP_none ? "x" : "y");
    ci_text_line(p->out, "%s = %s;", element, stored.data);
    ci_text_close(p->out);
}

/* Lanes that are not live keep their values. */
static void
print_part_of_register(CiCPrinter *p, const CiStmt *store, const char *value)
{
    const CiMemory *memory = store->at.memory;
    const char *element = ci_c_element(p, memory, store->at.index);
    CiDtype dtype = memory->dtype != CI_DTYPE_bool ? ci_dtype_compute(memory->dtype)
                    : memory->mask                 ? ci_c_mask_dtype(memory->mask)
                                                   : CI_DTYPE_u8;
    bool is_complex = ci_dtype_class(dtype) == CI_CLASS_complex;
    CiDtype part = is_complex ? ci_dtype_real(dtype) : dtype;
    const char *live =
        ci_format(p->ctx, "%s(%s)", ci_c_first_lanes(p, (int)ci_dtype_size(part), memory->lanes),
                  ci_emit_index_text(p->base, store->live));
    static const char *const parts[] = {".re", ".im"};
    for (int k = 0; k < 1 + is_complex; k++) {
        const char *name = is_complex ? parts[k] : "",
                   *old = ci_format(p->ctx, "%s%s", element, name),
                   *made = ci_format(p->ctx, "%s%s", value, name);
        ci_text_line(p->out, "%s = %s;", old, ci_c_where(p, part, memory->lanes, live, made, old));
    }
}

void
ci_c_print_vector_store(CiCPrinter *p, const CiStmt *store)
{
    const CiAccess *at = &store->at;
    CiDtype dtype = at->memory->dtype;
    int lanes = ci_c_type_of(p, store->args[0]).lanes;
    int width = at->memory->mask;
    const char *value = ci_c_name(p, store->args[0]);
    if (dtype == CI_DTYPE_bool)
        value = width ? ci_c_as_mask(p, store->args[0], width) : ci_c_as_bytes(p, store->args[0]);
    if (at->memory->lanes > 1 && store->live) {
        print_part_of_register(p, store, value);
    } else if (at->memory->lanes > 1) {
        ci_text_line(p->out, "%s = %s;", ci_c_element(p, at->memory, at->index), value);
    } else if (is_contiguous(p, at) && store->op == CI_OP_none) {
        const char *at_first = ci_c_pointer(p, store);
        CiDtype stored = stored_as(dtype);
        value = ci_c_narrowed(p, dtype, lanes, value);
        if (store->live)
            ci_text_line(p->out, "%s;",
                         ci_c_store_part(p, stored, lanes, at_first, value, store->live));
        else
            ci_text_line(p->out, "*(%s_u *)(%s) = %s;", ci_c_type(p, stored, lanes), at_first,
                         value);
    } else if (store->op == CI_OP_none && strided_function(p, store, lanes)) {
        ci_text_line(p->out, "%s(%s, %s%s);", strided_function(p, store, lanes), strided_address(p, store),
                     value, live_argument(p, store));
    } else {
        print_lane_store(p, store);
    }
}

void
ci_c_print_vector_pack(CiCPrinter *p, const CiStmt *call)
{
    const CiAccess *at = &call->at;
    const char *cell = ci_c_element(p, call->cell, ci_expr_const(p->sym, 0)),
               *pack = at->stride && !ci_expr_equals_const(at->stride, 1)
                           ? NULL
                           : ci_c_pack(p, at->memory->dtype, call->type.lanes);
    CiText value = ci_text_new(p->ctx);
    if (pack) {
        const char *live = call->live ? ci_emit_index_text(p->base, call->live)
                                      : ci_format(p->ctx, "%d", call->type.lanes),
                   *mask = ci_c_as_mask(p, call->args[1], ci_c_width(at->memory->dtype));
        ci_text_line(p->out, "%s += %s(%s + %s + %s, v%d, %s, %s, %s - %s);", cell, pack,
                     ci_c_memory(p, at->memory), ci_emit_index_text(p->base, at->index), cell,
                     call->args[0], mask, live, ci_emit_index_text(p->base, call->limit), cell);
        return;
    }
    open_lanes(p, call, call->type.lanes);
    if (call->live)
        ci_text_line(p->out, "if (l >= %s)", ci_emit_index_text(p->base, call->live));
    if (call->live)
        ci_text_line(p->out, "    break;");
    ci_text_line(p->out, "const %s x = %s;", ci_emit_type(at->memory->dtype),
                 lane_of(p, call->args[0], "l"));
    ci_emit_narrow(p->base, &value, at->memory->dtype, "x");
    ci_text_line(p->out, "if ((%s) && %s < %s)", lane_of(p, call->args[1], "l"), cell,
                 ci_emit_index_text(p->base, call->limit));
    ci_text_line(p->out, "    %s[%s + (%s)*%s++] = %s;", ci_c_memory(p, at->memory),
                 ci_emit_index_text(p->base, at->index),
                 at->stride ? ci_emit_index_text(p->base, at->stride) : "1", cell, value.data);
    ci_text_close(p->out);
}

/* ---- numbers of lanes ---- */

/* Lanes that are not live repeat the first one. */
static void
print_iota(CiCPrinter *p, const CiStmt *let)
{
    const char *type = ci_c_type(p, let->type.dtype, let->type.lanes);
    CiText numbers = ci_text_new(p->ctx);
    ci_text_add(&numbers, "(%s){", type);
    for (int l = 0; l < let->type.lanes; l++)
        ci_text_add(&numbers, l ? ", %d" : "%d", l);
    ci_text_add(&numbers, "}");
    const char *lane = numbers.data;
    if (let->live)
        lane = ci_format(p->ctx, "(%s & (%s < (%s)(%s)))", lane, lane,
                         ci_emit_type(let->type.dtype), ci_emit_index_text(p->base, let->live));
    declare(p, let,
            ci_format(p->ctx, "%s + (%s)(%s)", lane, ci_emit_type(let->type.dtype),
                      ci_emit_index_text(p->base, let->expr)));
}

static void
print_vector_index(CiCPrinter *p, const CiStmt *let)
{
    open_lane_let(p, let);
    declare_lane_symbols(p, let->expr, "l");
    set_lane(p, let, ci_emit_index_text(p->base, let->expr));
    ci_text_close(p->out);
}

/* Memory of the caller's may have been written to since a check saw the index in range: what is out
 * of range becomes 0. */
static void
print_vector_bind(CiCPrinter *p, const CiStmt *let)
{
    const char *text = ci_c_name(p, let->args[0]);
    if (let->limit)
        text = ci_format(
            p->ctx, "%s & ((%s)%s < %s)", text, ci_c_type(p, CI_DTYPE_u64, let->type.lanes), text,
            ci_format(p->ctx, "(uint64_t)(%s)", ci_emit_index_text(p->base, let->limit)));
    ci_map_put(p->lane_symbols, CI_KEY(let->expr), (void *)let);
    declare(p, let, text);
}

static void
print_splat(CiCPrinter *p, const CiStmt *let)
{
    CiDtype dtype = ci_dtype_compute(let->type.dtype);
    const char *name = ci_c_name(p, let->args[0]);
    if (ci_dtype_class(dtype) == CI_CLASS_complex) {
        const char *part = ci_c_splat(p, ci_dtype_real(dtype), let->type.lanes);
        declare(p, let, ci_format(p->ctx, "{%s(%s.re), %s(%s.im)}", part, name, part, name));
    } else {
        declare(p, let, ci_format(p->ctx, "%s(%s)", ci_c_splat(p, dtype, let->type.lanes), name));
    }
}

/* The lanes of an operation on what stands in which lane, as they are numbered in both operands. */
static int
source_lane(CiOp op, int lane, int lanes)
{
    switch (op) {
    case CI_OP_low:
        return lane;
    case CI_OP_high:
        return lane + lanes;
    case CI_OP_even:
    case CI_OP_evens:
        return 2 * lane;
    case CI_OP_odd:
    case CI_OP_odds:
        return 2 * lane + 1;
    default:
        return lane / 2 + (op == CI_OP_ziphi ? lanes / 2 : 0) + (lane % 2 ? lanes : 0);
    }
}

/* part: "", or one of a complex number's. */
static const char *
shuffle_text(CiCPrinter *p, const CiStmt *let, const char *part)
{
    int lanes = let->type.lanes;
    CiText text = ci_text_new(p->ctx);
    bool is_zip = let->op == CI_OP_ziplo || let->op == CI_OP_ziphi;
    if (is_zip && lanes == 4 && ci_dtype_size(let->type.dtype) == 8) {
        /* Compilers use three instructions for each zip of these. In this form, the zips of a pair share the inner two. */
        const char *pair = ci_format(p->ctx, "v%d%s, v%d%s", let->args[0], part, let->args[1], part);
        return ci_format(p->ctx,
                         "__builtin_shufflevector(__builtin_shufflevector(%s, 0, 4, 2, 6), "
                         "__builtin_shufflevector(%s, 1, 5, 3, 7), %s)",
                         pair, pair, let->op == CI_OP_ziplo ? "0, 1, 4, 5" : "2, 3, 6, 7");
    }
    ci_text_add(&text, "__builtin_shufflevector(v%d%s, v%d%s", let->args[0], part,
                let->args[let->nargs - 1], part);
    for (int l = 0; l < lanes; l++)
        ci_text_add(&text, ", %d", source_lane(let->op, l, lanes));
    ci_text_add(&text, ")");
    return text.data;
}

static void
print_shuffle(CiCPrinter *p, const CiStmt *let)
{
    const char *text;
    if (let->op == CI_OP_first_true)
        text = ci_c_first_true(p, let->args[0]);
    else if (let->type.lanes == 1)
        text = lane_of(p, let->args[0], ci_format(p->ctx, "%d", source_lane(let->op, 0, 1)));
    else if (ci_dtype_class(let->type.dtype) == CI_CLASS_complex)
        text = ci_format(p->ctx, "{%s, %s}", shuffle_text(p, let, ".re"),
                         shuffle_text(p, let, ".im"));
    else
        text = shuffle_text(p, let, "");
    declare(p, let, text);
}

/* One lane after another; in others the value is the last one's. */
static void
print_vector_running(CiCPrinter *p, const CiStmt *let)
{
    const char *cell = ci_c_element(p, let->cell, ci_expr_const(p->sym, 0)),
               *first = ci_emit_index_text(p->base, let->expr);
    CiText text = ci_text_new(p->ctx);
    open_lane_let(p, let);
    const char *lane = lane_name(let);
    ci_text_line(p->out, "const %s x = %s;", ci_emit_type(let->type.dtype),
                 lane_of(p, let->args[0], lane));
    ci_emit_combine(p->base, &text, let->op, let->type.dtype, cell, "x");
    if (let->live)
        ci_text_line(p->out, "if (l == %s)", lane);
    ci_text_line(p->out, "%s%s = %s + l > 0 ? %s : x;", let->live ? "    " : "", cell, first,
                 text.data);
    set_lane(p, let, cell);
    ci_text_close(p->out);
}

void
ci_c_print_vector_let(CiCPrinter *p, const CiStmt *let)
{
    CiOpKind kind = ci_op_kind(let->op);
    CiDtype operand = let->nargs ? ci_c_type_of(p, let->args[0]).dtype : let->type.dtype;
    if (let->op == CI_OP_load)
        print_load(p, let);
    else if (let->op == CI_OP_iota)
        print_iota(p, let);
    else if (let->op == CI_OP_index)
        print_vector_index(p, let);
    else if (let->op == CI_OP_bind)
        print_vector_bind(p, let);
    else if (let->op == CI_OP_splat)
        print_splat(p, let);
    else if (ci_stmt_is_running(let))
        print_vector_running(p, let);
    else if (kind == CI_OPKIND_lanes)
        print_shuffle(p, let);
    else if (kind == CI_OPKIND_math)
        print_vector_math(p, let);
    else if (!let->type.mask && ci_c_why_not_vector(p->ctx, let->op, operand, let->type.dtype))
        print_lane_operation(p, let);
    else if (let->op == CI_OP_cast)
        print_cast(p, let);
    else if (let->op == CI_OP_where)
        print_where(p, let);
    else
        print_vector_pointwise(p, let);
}
