/* Prints the lines as a C function, `call`, that follows the source of its kernels. Both are one
 * file, which needs no header, no library except C's own, and no Python. A program that needs more
 * than C is refused before anything is printed. */
#include "analysis/templates.h"
#include "wrapper/c_library.h"

#include <inttypes.h>
#include <string.h>

typedef struct Printer {
    CiText *out;
    const CiWrapper *wrapper;
    const CiLoops *loops;
    const CiProcs *procs;
    CiExprNames names;
    int *outside; /* by block around the line: the names that are known before it */
    int nblocks, capblocks;
} Printer;

static const char declarations[] =
    "\n/* ---- the program ---- */\n\n"
    "typedef struct ci_array {\n"
    "    void *data;     /* its memory; of a number the int64_t, the double or the two doubles */\n"
    "    int64_t offset; /* elements from there to its first */\n"
    "    int owner;      /* of a result: -1 memory of its own, for free(); k that of in[k]; -2 - j "
    "that of out[j] */\n"
    "    int64_t sizes[%d], strides[%d]; /* strides in elements */\n"
    "} ci_array;\n\n";

static const char helpers[] =
    "enum { CI_NO_MEMORY = 1, CI_FAILED = 2, CI_OTHER_LAYOUT = 3 };\n\n"
    "typedef int32_t ci_kernel(void *const *, const int64_t *, const void *, int64_t, int64_t, "
    "CiRun *);\n\n"
    "void *aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size);\n"
    "void free(void *block);\n\n"
    "static void *\nci_take(int64_t bytes)\n{\n"
    "    return aligned_alloc(64, ((__SIZE_TYPE__)(bytes > 0 ? bytes : 1) + 63) / 64 * 64);\n}\n\n"
    "static int32_t\nci_run_units(ci_kernel *kernel, void *const *buffers, const int64_t *sizes, "
    "const void *scalars,\n             int64_t units, int64_t scratch, void *partials, void "
    "*fault)\n{\n"
    "    int64_t turn = 0;\n"
    "    CiRun run = {.partials = partials, .fault = fault, .turn = &turn};\n"
    "    if (units <= 0)\n        return 0;\n"
    "    if (scratch > 0 && !(run.scratch = ci_take(scratch)))\n        return CI_NO_MEMORY;\n"
    "    int32_t status = kernel(buffers, sizes, scalars, 0, units, &run);\n"
    "    free(run.scratch);\n"
    "    return status ? CI_FAILED : 0;\n}\n\n"
    "/* finish: none where units hand on what they leave. */\n"
    "static int32_t\nci_run_split(ci_kernel *kernel, ci_kernel *finish, void *const *buffers, "
    "const "
    "int64_t *sizes,\n             const void *scalars, int64_t units, int64_t finish_units, "
    "int64_t scratch,\n             int64_t partial_bytes, void *fault)\n{\n"
    "    void *partials = ci_take(partial_bytes);\n"
    "    if (!partials)\n        return CI_NO_MEMORY;\n"
    "    __builtin_memset(partials, 0, partial_bytes);\n"
    "    int32_t status = ci_run_units(kernel, buffers, sizes, scalars, units, scratch, partials, "
    "fault);\n"
    "    if (!status && finish)\n        status = ci_run_units(finish, buffers, sizes, scalars, "
    "finish_units, "
    "scratch, partials, fault);\n"
    "    free(partials);\n"
    "    return status;\n}\n\n"
    "#define TAKE(name, bytes) do { if (!((name) = ci_take(bytes))) { status = CI_NO_MEMORY; goto "
    "done; } } while (0)\n"
    "#define GIVE(name) (free(name), (name) = 0)\n"
    "#define SWAP(a, b) do { void *kept = (a); (a) = (b); (b) = kept; } while (0)\n"
    "#define CHECK(holds, text) do { if (!(holds)) { *reason = (text); status = CI_FAILED; goto "
    "done; } } while (0)\n"
    "#define LAYOUT(holds, text) do { if (!(holds)) { *reason = (text); status = CI_OTHER_LAYOUT; "
    "goto done; } } while (0)\n";

/* By zero: zero, as nothing of that size is ever touched. */
static const char divisions[] =
    "\nstatic int64_t\nci_quotient(int64_t a, int64_t b)\n{\n"
    "    int64_t q = b ? a / b : 0;\n"
    "    return b && a - q * b != 0 && (a < 0) != (b < 0) ? q - 1 : q;\n}\n\n"
    "static int64_t\nci_remainder(int64_t a, int64_t b)\n{\n"
    "    return b ? a - ci_quotient(a, b) * b : 0;\n}\n";

/* ---- what C cannot do ---- */

static void
look_for_loops(void *arg, const CiNest *nest)
{
    const char **name = arg;
    for (int k = 0; k < nest->body.nops && !*name; k++)
        if (ci_op_kind(nest->body.ops[k].op) == CI_OPKIND_ufunc)
            *name = ci_op_name(nest->body.ops[k].op);
}

const char *
ci_wrapper_find_ufunc(const CiWrapper *wrapper)
{
    const char *name = NULL;
    for (int i = 0; i < wrapper->nlines && !name; i++)
        if (wrapper->lines[i].kernel)
            ci_kernel_visit_nests(wrapper->lines[i].kernel, look_for_loops, &name);
    return name;
}

const char *
ci_wrapper_why_no_c(const CiWrapper *wrapper)
{
    const char *ufunc = ci_wrapper_find_ufunc(wrapper);
    if (wrapper->machine->has_memory)
        return "the program is one of a device with memory of its own";
    if (ufunc)
        return ci_format(wrapper->ctx,
                         "C has no %s, a loop of NumPy's: numerics='close' has functions of its own", ufunc);
    for (int i = 0; i < wrapper->nlines; i++) {
        const CiLine *line = &wrapper->lines[i];
        const char *why = line->ext ? ci_c_library_refuses(wrapper->ctx, line->ext) : NULL;
        if (why)
            return ci_format(wrapper->ctx, "%s (line %d)", why, line->loc.line);
    }
    return NULL;
}

/* ---- parts ---- */

/* "in[0].sizes[1] <= 1 || ": an axis of one element has any stride; an empty array has any strides. */
static void
print_any_stride(CiText *out, const CiBuffer *input, int axis)
{
    ci_text_add(out, "in[%d].sizes[%d] <= 1 || ", input->input, axis);
    for (int other = 0; other < input->rank; other++)
        if (other != axis && !ci_expr_is_const(input->sizes[other], NULL))
            ci_text_add(out, "in[%d].sizes[%d] == 0 || ", input->input, other);
}

/* NULL: 0. */
static void
print_expr(Printer *printer, const CiExpr *e)
{
    if (e)
        ci_expr_print_program(printer->out, e, &printer->names);
    else
        ci_text_add(printer->out, "0");
}

/* {a, b}; {0} of none. */
static void
print_list(Printer *printer, int count, const CiExpr *const *items)
{
    CiText *out = printer->out;
    ci_text_add(out, "{");
    for (int k = 0; k < count; k++) {
        ci_text_add(out, k ? ", " : "");
        print_expr(printer, items[k]);
    }
    ci_text_add(out, count ? "}" : "0}");
}

/* Sizes first: strides follow from them. */
static void
print_layout(Printer *printer, const CiBuffer *input)
{
    CiText *out = printer->out;
    for (int axis = 0; axis < input->rank; axis++) {
        ci_text_indent(out);
        ci_text_add(out, "LAYOUT(in[%d].sizes[%d] == ", input->input, axis);
        print_expr(printer, input->sizes[axis]);
        ci_text_add(out, ", \"size %d of %s\");\n", axis, input->name);
    }
    for (int axis = 0; axis < input->rank; axis++) {
        ci_text_indent(out);
        ci_text_add(out, "LAYOUT(");
        print_any_stride(out, input, axis);
        ci_text_add(out, "in[%d].strides[%d] == ", input->input, axis);
        print_expr(printer, input->strides[axis]);
        ci_text_add(out, ", \"stride %d of %s\");\n", axis, input->name);
    }
}

static void
print_define(Printer *printer, const CiLine *line)
{
    const char *name = line->symbol->name;
    ci_text_line(printer->out, "%s = *(const int64_t *)%s;", name, line->buffer->name);
    ci_text_indent(printer->out);
    ci_text_add(printer->out, "CHECK(1");
    if (line->symbol->low != CI_MINUS_INFINITY)
        ci_text_add(printer->out, " && %s >= %" PRId64, name, line->symbol->low);
    if (!ci_expr_equals_const(line->value, CI_INFINITY)) {
        ci_text_add(printer->out, " && %s < ", name);
        print_expr(printer, line->value);
    }
    ci_text_add(printer->out, ", \"%s is out of range\");\n", name);
}

static void
print_test(Printer *printer, const CiLine *line)
{
    ci_text_open(printer->out, "if (!*(const uint8_t *)%s) {", line->buffer->name);
    for (int k = 0; k < line->nfrees; k++)
        ci_text_line(printer->out, printer->wrapper->pool_of[line->frees[k]->id] ? "%s = 0;" : "GIVE(%s);",
                     line->frees[k]->name);
    ci_text_line(printer->out, "break;");
    ci_text_close(printer->out);
}

/* Prints the reasons of the kernel's checks, by their numbers. */
static void
print_reasons(Printer *printer, const CiKernel *kernel)
{
    ci_text_open(printer->out, "if (status) {");
    for (int k = 0; k < kernel->nchecks; k++) {
        const CiCheckItem *check = kernel->checks[k];
        CiLine line = {.kind = CI_LINE_check,
                       .text = check->symbol ? ci_format(printer->wrapper->ctx,
                                                         "%s is out of range", check->symbol->name)
                                             : check->why};
        ci_text_indent(printer->out);
        ci_text_add(printer->out, "*reason = fault[1] == %d ? ", k);
        ci_line_print(printer->out, &line, "{text} : *reason;\n", CI_STYLE_program, NULL);
    }
    ci_text_line(printer->out, "goto done;");
    ci_text_close(printer->out);
}

static void
print_launch(Printer *printer, const CiLine *line)
{
    CiText *out = printer->out;
    const CiKernel *kernel = line->kernel;
    const CiLaunchExprs launch = ci_procs_launch(printer->procs, kernel->name);
    bool is_split = launch.of[CI_LAUNCH_partial_bytes] != NULL;
    ci_text_open(out, "{");
    ci_text_indent(out);
    ci_text_add(out, "void *const buffers[] = {");
    for (int k = 0; k < kernel->nbuffers; k++)
        ci_text_add(out, "%s%s", k ? ", " : "", kernel->buffers[k]->name);
    ci_text_add(out, "%s};\n", kernel->nbuffers ? "" : "0");
    ci_text_indent(out);
    ci_text_add(out, "const int64_t sizes[] = ");
    print_list(printer, kernel->nsize_args, kernel->size_args);
    ci_text_add(out, ";\n");
    ci_text_indent(out);
    if (!is_split)
        ci_text_add(out, "status = ci_run_units(%s, buffers, sizes, scalars", kernel->name);
    else if (launch.of[CI_LAUNCH_finish_units])
        ci_text_add(out, "status = ci_run_split(%s, %s_finish, buffers, sizes, scalars",
                    kernel->name, kernel->name);
    else
        ci_text_add(out, "status = ci_run_split(%s, 0, buffers, sizes, scalars", kernel->name);
    for (int k = 0; k < CI_LAUNCH_unit_work; k++) {
        if (k == CI_LAUNCH_finish_units && !is_split)
            continue;
        ci_text_add(out, ", ");
        if (launch.of[k])
            print_expr(printer, launch.of[k]);
        else
            ci_text_add(out, "0");
    }
    ci_text_add(out, ", fault);\n");
    print_reasons(printer, kernel);
    ci_text_close(out);
}

static void
print_view(Printer *printer, const CiExternItem *call, int k)
{
    CiText *out = printer->out;
    const CiBuffer *buffer = k == call->noperands ? call->result : call->operands[k];
    ci_text_indent(out);
    ci_text_add(out, "{(char *)%s + (", buffer->name);
    print_expr(printer, call->offsets[k]);
    ci_text_add(out, ") * %d, %d, ", ci_dtype_size(buffer->dtype), call->ranks[k]);
    print_list(printer, call->ranks[k], call->sizes[k]);
    ci_text_add(out, ", ");
    print_list(printer, call->ranks[k], call->strides[k]);
    ci_text_add(out, "},\n");
}

static void
print_call(Printer *printer, const CiExternItem *call)
{
    CiText *out = printer->out;
    int how;
    const char *routine = ci_c_library_routine(printer->loops->ctx, call, &how);
    ci_text_open(out, "{");
    ci_text_open(out, "const ci_view views[] = {");
    for (int k = 0; k <= call->noperands; k++)
        print_view(printer, call, k);
    out->indent -= 4;
    ci_text_line(out, "};");
    ci_text_open(out, "if ((status = %s(views, %d))) {", routine, how);
    ci_text_line(out, "*reason = \"%s refuses its parameters\";", call->ext->name);
    ci_text_line(out, "goto done;");
    ci_text_close(out);
    ci_text_close(out);
}

/* The owner of the memory of result number `number`. */
static int
owner_of(const CiLoops *loops, int number)
{
    const CiBuffer *buffer = loops->results[number].buffer;
    if (buffer->kind != CI_BUFFER_temp)
        return buffer->input;
    for (int k = 0; k < number; k++)
        if (loops->results[k].buffer == buffer)
            return -2 - k;
    return -1;
}

static void
print_return(Printer *printer)
{
    CiText *out = printer->out;
    for (int i = 0; i < printer->loops->nresults; i++) {
        const CiResult *result = &printer->loops->results[i];
        int owner = owner_of(printer->loops, i);
        ci_text_indent(out);
        if (owner >= 0)
            ci_text_add(out, "out[%d] = (ci_array){in[%d].data, in[%d].offset + ", i, owner, owner);
        else
            ci_text_add(out, "out[%d] = (ci_array){%s, ", i, result->buffer->name);
        print_expr(printer, result->offset);
        ci_text_add(out, ", %d, ", owner);
        print_list(printer, result->rank, result->sizes);
        ci_text_add(out, ", ");
        print_list(printer, result->rank, result->strides);
        ci_text_add(out, "};\n");
    }
}

static void
print_symbol(Printer *printer, const CiLine *line)
{
    if (line->number < 0)
        ci_text_line(printer->out, "%s = *(const int64_t *)%s;", line->symbol->name,
                     line->buffer->name);
    else
        ci_text_line(printer->out, "%s = in[%d].sizes[%d];", line->symbol->name,
                     line->buffer->input, line->number);
}

/* ---- lines ---- */

/* Prints lines without a pattern. Lines that need a device or Python have been refused before. */
static void
print_other(Printer *printer, const CiLine *line)
{
    switch (line->kind) {
    case CI_LINE_symbol:
        print_symbol(printer, line);
        break;
    case CI_LINE_assert_size:
        print_layout(printer, line->buffer);
        break;
    case CI_LINE_launch:
        print_launch(printer, line);
        break;
    case CI_LINE_extern:
        print_call(printer, line->ext);
        break;
    case CI_LINE_define:
        print_define(printer, line);
        break;
    case CI_LINE_test:
        print_test(printer, line);
        break;
    case CI_LINE_return:
        print_return(printer);
        break;
    default:
        ci_fail(printer->wrapper->ctx, CI_ERR_INTERNAL, "a line of %s in C",
                ci_line_row(line->kind)->name);
    }
}

/* Names of long expressions are declared before the line that first has them. */
static void
print_line(Printer *printer, const CiLine *line)
{
    const char *pattern = ci_line_row(line->kind)->c;
    CiContext *ctx = printer->wrapper->ctx;
    CiText *out = printer->out, code = ci_text_new(ctx), names = ci_text_new(ctx);
    if (ci_line_closes(line)) {
        out->indent -= 4;
        printer->names.count = printer->outside[--printer->nblocks];
    }
    code.indent = names.indent = out->indent;
    printer->out = &code;
    printer->names.declarations = &names;
    if (pattern) {
        ci_text_indent(&code);
        ci_line_print(&code, line, pattern, CI_STYLE_program, &printer->names);
        ci_text_add(&code, "\n");
    } else {
        print_other(printer, line);
    }
    printer->names.declarations = NULL;
    ci_text_add(out, "%s%s", names.data, code.data);
    printer->out = out;
    if (ci_line_opens(line)) {
        out->indent += 4;
        CI_PUSH(ctx, printer->outside, printer->nblocks, printer->capblocks, printer->names.count);
    }
}

static void
print_locals(Printer *printer)
{
    const CiWrapper *w = printer->wrapper;
    CiText *out = printer->out;
    int nscalars = 0;
    ci_text_line(out, "int32_t status = 0;");
    ci_text_line(out, "int32_t fault[16] = {0};");
    ci_text_line(out, "double scalars[%d][2] = {{0}};", printer->loops->ninputs + 1);
    for (int i = 0; i < w->nbuffers; i++) {
        const CiBuffer *buffer = w->buffers[i];
        if (buffer->kind == CI_BUFFER_temp)
            ci_text_line(out, "void *%s = 0;", buffer->name);
        else if (buffer->kind == CI_BUFFER_input)
            ci_text_line(out, "void *%s = (char *)in[%d].data + in[%d].offset * %d;", buffer->name,
                         buffer->input, buffer->input, ci_dtype_size(buffer->dtype));
        else
            ci_text_line(out, "void *%s = __builtin_memcpy(scalars[%d], in[%d].data, %d);",
                         buffer->name, nscalars++, buffer->input,
                         ci_dtype_class(buffer->dtype) == CI_CLASS_complex ? 16 : 8);
        if (buffer->kind != CI_BUFFER_temp)
            ci_text_line(out, "(void)%s;", buffer->name);
    }
    for (int i = 0; i < w->nlines; i++)
        if (w->lines[i].symbol)
            ci_text_line(out, "int64_t %s = 0;", w->lines[i].symbol->name);
    ci_text_line(out, "(void)fault, (void)scalars, (void)out, (void)reason;");
}

static void
print_done(Printer *printer)
{
    const CiWrapper *w = printer->wrapper;
    CiText *out = printer->out;
    ci_text_line(out, "return 0;");
    ci_text_add(out, "done:\n");
    for (int i = 0; i < w->nbuffers; i++)
        if (w->buffers[i]->kind == CI_BUFFER_temp && !w->pool_of[i])
            ci_text_line(out, "free(%s);", w->buffers[i]->name);
    ci_text_line(out, "return status;");
}

void
ci_wrapper_print_c(CiText *out, const CiWrapper *wrapper, const CiProcs *procs)
{
    Printer printer = {.out = out, .wrapper = wrapper, .loops = wrapper->kernels->loops, .procs = procs};
    ci_text_add(out, declarations, CI_MAX_RANK, CI_MAX_RANK);
    ci_text_add(out, "%s%s", helpers, divisions);
    ci_c_library_print_routines(out, wrapper);
    ci_text_add(out, "\n/* 0, or why not; *reason says more. Nothing is left allocated then. */\n"
                     "int32_t\ncall(const ci_array *in, ci_array *out, const char **reason)\n{\n");
    out->indent += 4;
    print_locals(&printer);
    for (int i = 0; i < wrapper->nlines; i++)
        print_line(&printer, &wrapper->lines[i]);
    print_done(&printer);
    out->indent -= 4;
    ci_text_add(out, "}\n");
}
