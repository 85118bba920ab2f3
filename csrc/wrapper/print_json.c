/* The lines as JSON, for tools: one object per line, with the fields that its kind uses. Constant
 * expressions are numbers, others text. */
#include <string.h>

#include "analysis/templates.h"
#include "wrapper/wrapper.h"

static void
print_string(CiText *out, const char *text)
{
    ci_text_add(out, "\"");
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            ci_text_add(out, "\\%c", *c);
        else if (*c < 0x20 || *c == 0x7f)
            ci_text_add(out, "\\u%04x", *c);
        else
            ci_text_add_chars(out, (const char *)c, 1);
    }
    ci_text_add(out, "\"");
}

static void
print_expr(CiText *out, const CiExpr *e)
{
    int64_t value;
    if (ci_expr_is_const(e, &value)) {
        ci_text_add(out, "%lld", (long long)value);
        return;
    }
    CiText text = ci_text_new(out->ctx);
    ci_expr_print(&text, e, CI_STYLE_text);
    print_string(out, text.data);
}

static void
print_exprs(CiText *out, const char *field, int count, const CiExpr *const *items)
{
    ci_text_add(out, ", \"%s\": [", field);
    for (int i = 0; i < count; i++) {
        ci_text_add(out, i ? ", " : "");
        print_expr(out, items[i]);
    }
    ci_text_add(out, "]");
}

static void
print_field(CiText *out, const char *field, const char *text)
{
    ci_text_add(out, ", \"%s\": ", field);
    print_string(out, text);
}

static void
print_expr_field(CiText *out, const char *field, const CiExpr *e)
{
    ci_text_add(out, ", \"%s\": ", field);
    print_expr(out, e);
}

static void
print_buffers(CiText *out, const CiWrapper *wrapper)
{
    static const char *const KINDS[] = {"input", "scalar", "temp"};
    ci_text_add(out, "  \"buffers\": [");
    for (int i = 0; i < wrapper->nbuffers; i++) {
        const CiBuffer *buffer = wrapper->buffers[i];
        ci_text_add(out, "%s\n    {\"name\": ", i ? "," : "");
        print_string(out, buffer->name);
        print_field(out, "kind", KINDS[buffer->kind]);
        print_field(out, "dtype", ci_dtype_name(buffer->dtype));
        print_exprs(out, "sizes", buffer->rank, buffer->sizes);
        print_exprs(out, "strides", buffer->rank, buffer->strides);
        if (wrapper->nsides > 2 && wrapper->side_of[i] != CI_SIDE_host)
            ci_text_add(out, ", \"device\": %d", wrapper->side_of[i] - CI_SIDE_device);
        if (buffer->is_written)
            ci_text_add(out, ", \"written\": true");
        if (buffer->is_result)
            ci_text_add(out, ", \"result\": true");
        ci_text_add(out, "}");
    }
    ci_text_add(out, "\n  ],\n");
}

static void
print_results(CiText *out, const CiLoops *loops)
{
    static const char *const KINDS[] = {"array", "scalar", "python"};
    ci_text_add(out, "  \"results\": [");
    for (int i = 0; i < loops->nresults; i++) {
        const CiResult *result = &loops->results[i];
        ci_text_add(out, "%s\n    {\"buffer\": ", i ? "," : "");
        print_string(out, result->buffer->name);
        print_field(out, "kind", KINDS[result->kind]);
        ci_text_add(out, ", \"whole\": %s", result->is_whole ? "true" : "false");
        if (result->offset)
            print_expr_field(out, "offset", result->offset);
        print_exprs(out, "sizes", result->rank, result->sizes);
        print_exprs(out, "strides", result->rank, result->strides);
        ci_text_add(out, "}");
    }
    ci_text_add(out, "\n  ]\n");
}

static void
print_names(CiText *out, const CiWrapper *wrapper, CiSide side, int count, CiBuffer *const *buffers)
{
    ci_text_add(out, ", \"buffers\": [");
    for (int i = 0; i < count; i++) {
        ci_text_add(out, i ? ", " : "");
        print_string(out, buffers[i]->kind == CI_BUFFER_scalar
                              ? buffers[i]->name
                              : wrapper->sides[side][buffers[i]->id]->name);
    }
    ci_text_add(out, "]");
}

static void
print_locs(CiText *out, int nlocs, const CiLoc *locs)
{
    ci_text_add(out, ", \"source\": [");
    for (int i = 0; i < nlocs; i++) {
        ci_text_add(out, "%s[", i ? ", " : "");
        print_string(out, locs[i].file);
        ci_text_add(out, ", %d]", locs[i].line);
    }
    ci_text_add(out, "]");
}

static void
print_reasons(CiText *out, const CiKernel *kernel)
{
    ci_text_add(out, ", \"reasons\": [");
    for (int k = 0; k < kernel->nchecks; k++) {
        const CiCheckItem *check = kernel->checks[k];
        ci_text_add(out, k ? ", " : "");
        print_string(out, check->symbol
                              ? ci_format(out->ctx, "%s is out of range", check->symbol->name)
                              : check->why);
    }
    ci_text_add(out, "]");
}

/* Units of work, and the memory for them; chained: its units hand on what they leave. */
static void
print_amounts(CiText *out, const CiProcs *procs, const CiKernel *kernel)
{
    CiLaunchExprs launch = procs ? ci_procs_launch(procs, kernel->name) : (CiLaunchExprs){{NULL}};
    for (int k = 0; k < CI_LAUNCH_unit_work; k++)
        if (launch.of[k])
            print_expr_field(out, ci_launch_names[k], launch.of[k]);
    if (launch.of[CI_LAUNCH_partial_bytes] && !launch.of[CI_LAUNCH_finish_units])
        ci_text_add(out, ", \"chained\": true");
    if (kernel->nchecks)
        print_reasons(out, kernel);
}

/* Of operands, and then the result: where each begins, its sizes and strides. */
static void
print_views(CiText *out, const CiExternItem *ext)
{
    ci_text_add(out, ", \"views\": [");
    for (int k = 0; k <= ext->noperands; k++) {
        ci_text_add(out, k ? ", {\"offset\": " : "{\"offset\": ");
        print_expr(out, ext->offsets[k]);
        print_exprs(out, "sizes", ext->ranks[k], ext->sizes[k]);
        print_exprs(out, "strides", ext->ranks[k], ext->strides[k]);
        ci_text_add(out, "}");
    }
    ci_text_add(out, "]");
}

static void
print_run_line(CiText *out, const CiWrapper *wrapper, const CiProcs *procs, const CiLine *line)
{
    if (line->kernel) {
        ci_text_add(out, ", \"kernel\": %d", line->kernel->id);
        if (wrapper->nsides > 2)
            ci_text_add(out, ", \"device\": %d", line->side - CI_SIDE_device);
        print_names(out, wrapper, line->side, line->kernel->nbuffers, line->kernel->buffers);
        print_exprs(out, "sizes", line->kernel->nsize_args, line->kernel->size_args);
        print_amounts(out, procs, line->kernel);
        print_locs(out, line->kernel->nlocs, line->kernel->locs);
        return;
    }
    ci_text_add(out, ", \"number\": %d", line->number);
    print_field(out, "name", ci_extern_print_name(line->ext->ext));
    print_field(out, "key", line->ext->ext->key ? line->ext->ext->key : "");
    print_names(out, wrapper, line->side, line->ext->noperands, line->ext->operands);
    print_field(out, "result", wrapper->sides[line->side][line->ext->result->id]->name);
    print_views(out, line->ext);
    print_locs(out, 1, &line->loc);
}

/* Omits infinite bounds. */
static void
print_range(CiText *out, const CiLine *line)
{
    if (line->symbol->low != CI_MINUS_INFINITY)
        ci_text_add(out, ", \"low\": %lld", (long long)line->symbol->low);
    if (!ci_expr_equals_const(line->value, CI_INFINITY))
        print_expr_field(out, "limit", line->value);
}

static void
print_line(CiText *out, const CiWrapper *wrapper, const CiProcs *procs, const CiLine *line)
{
    ci_text_add(out, "    {\"line\": \"%s\"", ci_line_row(line->kind)->name);
    if (line->kernel || line->ext)
        print_run_line(out, wrapper, procs, line);
    if (line->buffer)
        print_field(out, "buffer", line->buffer->name);
    if (line->other)
        print_field(out, "from", line->other->name);
    if (line->bytes)
        print_expr_field(out, "bytes", line->bytes);
    if (line->symbol)
        print_field(out, "symbol", line->symbol->name);
    if (line->kind == CI_LINE_symbol)
        ci_text_add(out, ", \"axis\": %d", line->number);
    if (line->kind == CI_LINE_define)
        print_range(out, line);
    else if (line->value)
        print_expr_field(out, line->kind == CI_LINE_part ? "offset" : "extent", line->value);
    if (line->is_parallel)
        ci_text_add(out, ", \"parallel\": true");
    for (int k = 0; k < line->nfrees; k++) {
        ci_text_add(out, k ? ", " : ", \"frees\": [");
        print_string(out, line->frees[k]->name);
        ci_text_add(out, k + 1 == line->nfrees ? "]" : "");
    }
    if (line->text)
        print_field(out, "text", line->text);
    if (line->match >= 0)
        ci_text_add(out, ", \"match\": %d", line->match);
    ci_text_add(out, "}");
}

void
ci_wrapper_print_json(CiText *out, const CiWrapper *wrapper, const CiProcs *procs, const char *source,
                      const char *flags, const char *arch)
{
    const CiLoops *loops = wrapper->kernels->loops;
    ci_text_add(out, "{\n  \"name\": ");
    print_string(out, loops->name);
    ci_text_add(out, ",\n  \"inputs\": %d,\n", loops->ninputs);
    if (arch)
        ci_text_add(out, "  \"arch\": \"%s\",\n", arch);
    print_buffers(out, wrapper);
    ci_text_add(out, "  \"lines\": [\n");
    for (int i = 0; i < wrapper->nlines; i++) {
        print_line(out, wrapper, procs, &wrapper->lines[i]);
        ci_text_add(out, i + 1 < wrapper->nlines ? ",\n" : "\n");
    }
    ci_text_add(out, "  ],\n");
    if (source) {
        if (ci_wrapper_find_ufunc(wrapper))
            ci_text_add(out, "  \"asks_numpy\": true,\n");
        ci_text_add(out, "  \"flags\": ");
        print_string(out, flags);
        ci_text_add(out, ",\n  \"source\": ");
        print_string(out, source);
        ci_text_add(out, ",\n");
    }
    print_results(out, loops);
    ci_text_add(out, "}\n");
}
