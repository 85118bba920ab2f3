/* Lets and stores in lanes: vector instructions where an operation has them, else a loop over the
 * lanes. */
#include "target/c/c.h"

static const char *
name_of(CiCPrinter *p, int value)
{
    return ci_format(p->ctx, "v%d", value);
}

static CiType
type_of(const CiCPrinter *p, int value)
{
    return p->proc->types[value];
}

static int
width_of(CiDtype dtype)
{
    return (int)ci_dtype_size(ci_dtype_compute(dtype));
}

static void
declare(CiCPrinter *p, const CiStmt *let, const char *text)
{
    ci_text_line(p->out, "const %s v%d = %s;",
                 p->masks[let->value]
                     ? ci_c_mask_type(p, p->masks[let->value], let->type.lanes)
                     : ci_c_type(p, let->type.dtype, let->type.lanes),
                 let->value, text);
}

/* ---- bools ---- */

/* A bool as a mask of so many bytes a lane. */
static const char *
as_mask(CiCPrinter *p, int value, int bytes)
{
    int lanes = type_of(p, value).lanes, width = p->masks[value];
    const char *name = name_of(p, value);
    if (width == 0)
        name = ci_format(p->ctx, "(%s != 0)", name);
    if (bytes == (width ? width : 1))
        return name;
    return ci_format(p->ctx, "__builtin_convertvector(%s, %s)", name,
                     ci_c_mask_type(p, bytes, lanes));
}

/* As bytes that are 0 or 1. */
static const char *
as_bytes(CiCPrinter *p, int value)
{
    int lanes = type_of(p, value).lanes;
    const char *type = ci_c_type(p, CI_DTYPE_u8, lanes), *name = name_of(p, value);
    if (p->masks[value] == 0)
        return name;
    return ci_format(p->ctx, "(__builtin_convertvector(%s, %s) & 1)", name, type);
}

/* The widest mask among bools, at least a byte. */
static int
common_width(const CiCPrinter *p, const int *values, int count)
{
    int width = 1;
    for (int k = 0; k < count; k++)
        width = p->masks[values[k]] > width ? p->masks[values[k]] : width;
    return width;
}

/* ---- operations ---- */

static void
print_cast(CiCPrinter *p, const CiStmt *let)
{
    CiDtype from = type_of(p, let->args[0]).dtype, to = let->type.dtype;
    int lanes = let->type.lanes;
    const char *name = name_of(p, let->args[0]), *type = ci_c_type(p, to, lanes);
    if (to == CI_DTYPE_bool && from == CI_DTYPE_bool) {
        p->masks[let->value] = p->masks[let->args[0]];
    } else if (to == CI_DTYPE_bool) {
        p->masks[let->value] = width_of(from);
        name = ci_format(p->ctx, "(%s != 0)", name);
    } else if (from == CI_DTYPE_bool) {
        name = ci_format(p->ctx, "__builtin_convertvector(%s, %s)", as_bytes(p, let->args[0]), type);
    } else {
        bool is_far = ci_dtype_is_float(from) && ci_dtype_is_integral(to) && ci_dtype_size(to) < 4;
        if (is_far) /* as x86 converts */
            name = ci_c_convert(p, from, CI_DTYPE_i32, lanes, name);
        name = ci_c_convert(p, is_far ? CI_DTYPE_i32 : from, to, lanes, name);
    }
    declare(p, let, name);
}

static void
print_where(CiCPrinter *p, const CiStmt *let)
{
    int lanes = let->type.lanes, width = width_of(let->type.dtype);
    const char *yes = name_of(p, let->args[1]), *no = name_of(p, let->args[2]);
    if (let->type.dtype == CI_DTYPE_bool) {
        width = p->masks[let->value] = common_width(p, let->args, 3);
        yes = as_mask(p, let->args[1], width);
        no = as_mask(p, let->args[2], width);
    }
    declare(p, let,
            ci_c_where(p, let->type.dtype, lanes, as_mask(p, let->args[0], width), yes, no));
}

static void
print_vector_pointwise(CiCPrinter *p, const CiStmt *let)
{
    CiDtype operand = type_of(p, let->args[0]).dtype;
    const char *names[CI_MAX_OPERANDS] = {"", "", "", ""};
    int width = operand == CI_DTYPE_bool ? common_width(p, let->args, let->nargs)
                                         : width_of(operand);
    for (int a = 0; a < let->nargs; a++)
        names[a] = operand == CI_DTYPE_bool ? as_mask(p, let->args[a], width)
                                            : name_of(p, let->args[a]);
    if (let->type.dtype == CI_DTYPE_bool)
        p->masks[let->value] = width;
    declare(p, let, ci_c_pointwise(p, let->op, operand, let->type.lanes, names));
}

/* ---- lane by lane ---- */

static void
open_lanes(CiCPrinter *p, const CiStmt *stmt, int lanes)
{
    p->is_plain = false;
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
    CiType type = type_of(p, value);
    if (type.lanes == 1)
        return name_of(p, value);
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
        ci_text_line(p->out, "const %s %s = %s;", ci_emit_type(type_of(p, let->args[a]).dtype),
                     letters[a], lane_of(p, let->args[a], lane_name(let)));
    CiText text = ci_text_new(p->ctx);
    ci_emit_scalar(p->base, &text, &op, type_of(p, let->args[let->op == CI_OP_where]).dtype,
                   letters);
    set_lane(p, let, text.data);
    ci_text_close(p->out);
}

static void
print_vector_math(CiCPrinter *p, const CiStmt *let)
{
    CiDtype dtype = ci_dtype_compute(let->type.dtype);
    const char *call = ci_c_math(p, let->op, dtype, let->type.lanes);
    const char *text = ci_format(p->ctx, "%s(v%d%s", call, let->args[0], let->nargs > 1 ? ", " : ")");
    if (let->nargs > 1)
        text = ci_format(p->ctx, "%sv%d)", text, let->args[1]);
    if (let->type.dtype != CI_DTYPE_f16) {
        declare(p, let, text);
        return;
    }
    ci_text_line(p->out, "const %s exact%d = %s;", ci_c_type(p, dtype, let->type.lanes), let->value,
                 text);
    open_lane_let(p, let);
    set_lane(p, let,
             ci_format(p->ctx, "%s(exact%d[l])", ci_emit_use(p->base, "round_half", CI_DTYPE_f32),
                       let->value));
    ci_text_close(p->out);
}

/* ---- memory ---- */

static bool
has_lanes(const CiCPrinter *p, const CiExpr *e)
{
    for (int k = 0; k < e->nsymbols; k++)
        if (ci_map_find(p->lane_symbols, CI_KEY(e->symbols[k])))
            return true;
    return false;
}

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
    return !at->stride && !has_lanes(p, at->index) && at->memory->dtype != CI_DTYPE_f16 &&
           ci_dtype_class(at->memory->dtype) != CI_CLASS_complex;
}

/* The element of one lane. */
static const char *
lane_element(CiCPrinter *p, const CiStmt *stmt)
{
    const CiAccess *at = &stmt->at;
    const char *lane = lane_name(stmt);
    declare_lane_symbols(p, at->index, lane);
    const char *index = ci_emit_index_text(p->base, at->index);
    if (!has_lanes(p, at->index))
        index = ci_format(p->ctx, "%s + %s * (%s)", index, lane,
                          at->stride ? ci_emit_index_text(p->base, at->stride) : "1");
    return ci_format(p->ctx, "%s[%s]", ci_c_memory(p, at->memory), index);
}

static void
print_load(CiCPrinter *p, const CiStmt *let)
{
    const CiAccess *at = &let->at;
    CiDtype dtype = at->memory->dtype;
    int lanes = let->type.lanes;
    if (at->memory->lanes > 1) {
        declare(p, let, ci_c_element(p, at->memory, at->index));
    } else if (is_contiguous(p, at)) {
        const char *name = ci_c_memory(p, at->memory),
                   *index = ci_emit_index_text(p->base, at->index);
        declare(p, let,
                let->live ? ci_format(p->ctx, "%s(%s + %s, %s)", ci_c_load_part(p, dtype, lanes),
                                      name, index, ci_emit_index_text(p->base, let->live))
                          : ci_format(p->ctx, "*(const %s_u *)(%s + %s)",
                                      ci_c_type(p, dtype, lanes), name, index));
    } else {
        open_lane_let(p, let);
        CiText text = ci_text_new(p->ctx);
        ci_emit_widen(p->base, &text, dtype, lane_element(p, let));
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
    open_lanes(p, store, type_of(p, store->args[0]).lanes);
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

void
ci_c_print_vector_store(CiCPrinter *p, const CiStmt *store)
{
    const CiAccess *at = &store->at;
    CiDtype dtype = at->memory->dtype;
    int lanes = type_of(p, store->args[0]).lanes;
    const char *value =
        dtype == CI_DTYPE_bool ? as_bytes(p, store->args[0]) : name_of(p, store->args[0]);
    if (at->memory->lanes > 1) {
        ci_text_line(p->out, "%s = %s;", ci_c_element(p, at->memory, at->index), value);
    } else if (is_contiguous(p, at) && store->op == CI_OP_none) {
        const char *name = ci_c_memory(p, at->memory),
                   *index = ci_emit_index_text(p->base, at->index);
        if (store->live)
            ci_text_line(p->out, "%s(%s + %s, %s, %s);", ci_c_store_part(p, dtype, lanes), name,
                         index, value, ci_emit_index_text(p->base, store->live));
        else
            ci_text_line(p->out, "*(%s_u *)(%s + %s) = %s;", ci_c_type(p, dtype, lanes), name,
                         index, value);
    } else {
        print_lane_store(p, store);
    }
}

/* ---- numbers of lanes ---- */

/* Behind the live lanes the first one's. */
static void
print_iota(CiCPrinter *p, const CiStmt *let)
{
    const char *type = ci_c_type(p, CI_DTYPE_i64, let->type.lanes);
    CiText numbers = ci_text_new(p->ctx);
    ci_text_add(&numbers, "(%s){", type);
    for (int l = 0; l < let->type.lanes; l++)
        ci_text_add(&numbers, l ? ", %d" : "%d", l);
    ci_text_add(&numbers, "}");
    const char *lane = numbers.data;
    if (let->live)
        lane = ci_format(p->ctx, "(%s & (%s < %s))", lane, lane,
                         ci_emit_index_text(p->base, let->live));
    declare(p, let, ci_format(p->ctx, "%s + (%s)", lane, ci_emit_index_text(p->base, let->expr)));
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
    const char *text = name_of(p, let->args[0]);
    if (let->limit)
        text = ci_format(p->ctx, "%s & ((%s)%s < %s)", text,
                         ci_c_type(p, CI_DTYPE_u64, let->type.lanes), text,
                         ci_format(p->ctx, "(uint64_t)(%s)",
                                   ci_emit_index_text(p->base, let->limit)));
    ci_map_put(p->lane_symbols, CI_KEY(let->expr), (void *)let);
    declare(p, let, text);
}

static void
print_splat(CiCPrinter *p, const CiStmt *let)
{
    CiDtype dtype = ci_dtype_compute(let->type.dtype);
    const char *name = name_of(p, let->args[0]);
    if (ci_dtype_class(dtype) == CI_CLASS_complex) {
        const char *part = ci_c_splat(p, ci_dtype_real(dtype), let->type.lanes);
        declare(p, let,
                ci_format(p->ctx, "{%s(%s.re), %s(%s.im)}", part, name, part, name));
    } else {
        declare(p, let,
                ci_format(p->ctx, "%s(%s)", ci_c_splat(p, dtype, let->type.lanes), name));
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
        return 2 * lane;
    case CI_OP_odd:
        return 2 * lane + 1;
    default:
        return lane / 2 + (op == CI_OP_ziphi ? lanes / 2 : 0) + (lane % 2 ? lanes : 0);
    }
}

static void
print_shuffle(CiCPrinter *p, const CiStmt *let)
{
    int lanes = let->type.lanes;
    CiText text = ci_text_new(p->ctx);
    p->masks[let->value] = p->masks[let->args[0]];
    if (lanes == 1) {
        ci_text_add(&text, "v%d[%d]", let->args[0], source_lane(let->op, 0, 1));
    } else {
        ci_text_add(&text, "__builtin_shufflevector(v%d, v%d", let->args[0],
                    let->args[let->nargs - 1]);
        for (int l = 0; l < lanes; l++)
            ci_text_add(&text, ", %d", source_lane(let->op, l, lanes));
        ci_text_add(&text, ")");
    }
    declare(p, let, text.data);
}

void
ci_c_print_vector_let(CiCPrinter *p, const CiStmt *let)
{
    CiOpKind kind = ci_op_kind(let->op);
    CiDtype operand = let->nargs ? type_of(p, let->args[0]).dtype : let->type.dtype;
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
    else if (kind == CI_OPKIND_lanes)
        print_shuffle(p, let);
    else if (kind == CI_OPKIND_math)
        print_vector_math(p, let);
    else if (ci_c_why_not_vector(p->ctx, let->op, operand, let->type.dtype))
        print_lane_operation(p, let);
    else if (let->op == CI_OP_cast)
        print_cast(p, let);
    else if (let->op == CI_OP_where)
        print_where(p, let);
    else
        print_vector_pointwise(p, let);
}
