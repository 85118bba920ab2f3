/* The lines as a Python function; wrapper.h shows the form. Names are the compiler's own (in0,
 * buf3, s0): nothing of the user's reaches the text but file names in comments, made safe. */
#include <inttypes.h>
#include <string.h>

#include "wrapper/wrapper.h"

typedef struct Printer {
    CiText *out;
    const CiWrapper *wrapper;
    const CiExpr **symbols; /* the program's, in its order: extents, then those of lines */
    int nsymbols, capsymbols;
    const char *separator;
} Printer;

static void
print_tuple(CiText *out, int count, const CiExpr *const *items)
{
    ci_text_add(out, "(");
    for (int i = 0; i < count; i++) {
        ci_text_add(out, i ? ", " : "");
        ci_expr_print(out, items[i], CI_STYLE_python);
    }
    ci_text_add(out, count == 1 ? ",)" : ")");
}

static void
print_view(CiText *out, const char *name, const CiExpr *offset, int rank,
           const CiExpr *const *sizes, const CiExpr *const *strides)
{
    ci_text_add(out, "as_strided(%s, ", name);
    if (offset)
        ci_expr_print(out, offset, CI_STYLE_python);
    else
        ci_text_add(out, "0");
    ci_text_add(out, ", ");
    print_tuple(out, rank, sizes);
    ci_text_add(out, ", ");
    print_tuple(out, rank, strides);
    ci_text_add(out, ")");
}

static bool
is_same_layout(int rank, const CiExpr *const *sizes, const CiExpr *const *strides,
               const CiBuffer *buffer)
{
    bool same = rank == buffer->rank;
    for (int axis = 0; same && axis < rank; axis++)
        same = sizes[axis] == buffer->sizes[axis] && strides[axis] == buffer->strides[axis];
    return same;
}

/* The smallest line number of a file greater than `above`; 0 if there is none. */
static int
next_line(int nlocs, const CiLoc *locs, const char *file, int above)
{
    int least = 0;
    for (int i = 0; i < nlocs; i++)
        if (!strcmp(locs[i].file, file) && locs[i].line > above && (!least || locs[i].line < least))
            least = locs[i].line;
    return least;
}

/* Prints `net.py:7-8,12`, without the folder. Quadratic, because a step has few lines. */
static void
print_locs(CiText *out, int nlocs, const CiLoc *locs)
{
    const char *separator = "  # ";
    for (int i = 0; i < nlocs; i++) {
        bool is_first = locs[i].file[0] && locs[i].line > 0;
        for (int k = 0; k < i && is_first; k++)
            is_first = strcmp(locs[k].file, locs[i].file) != 0;
        if (!is_first)
            continue;
        const char *slash = strrchr(locs[i].file, '/');
        ci_text_add(out, "%s", separator);
        ci_text_add_safe(out, slash ? slash + 1 : locs[i].file);
        separator = " ";
        int line = next_line(nlocs, locs, locs[i].file, 0);
        for (const char *mark = ":"; line; mark = ",") {
            int last = line;
            while (next_line(nlocs, locs, locs[i].file, last) == last + 1)
                last++;
            ci_text_add(out, last > line ? "%s%d-%d" : "%s%d", mark, line, last);
            line = next_line(nlocs, locs, locs[i].file, last);
        }
    }
}

static void
print_comma_name(Printer *printer, const char *name)
{
    ci_text_add(printer->out, "%s%s", printer->separator, name);
    printer->separator = ", ";
}

static void
print_scalar(void *arg, const CiBuffer *buffer, int slot)
{
    (void)slot;
    print_comma_name(arg, buffer->name);
}

/* Prints `on1` for a step on a device other than the first. */
static void
print_device(CiText *out, CiSide side)
{
    if (side > CI_SIDE_device)
        ci_text_add(out, "on%d.", side - CI_SIDE_device);
}

static void
print_launch(Printer *printer, const CiLine *line)
{
    const CiWrapper *w = printer->wrapper;
    const CiKernel *kernel = line->kernel;
    ci_text_indent(printer->out);
    print_device(printer->out, line->side);
    ci_text_add(printer->out, "k%d(", kernel->id);
    printer->separator = "";
    for (int k = 0; k < kernel->nbuffers; k++) {
        const CiBuffer *buffer = kernel->buffers[k];
        print_comma_name(printer, buffer->kind == CI_BUFFER_scalar
                                      ? buffer->name
                                      : w->sides[line->side][buffer->id]->name);
    }
    ci_kernel_visit_scalars(w->kernels, kernel, print_scalar, printer);
    for (int k = 0; k < printer->nsymbols; k++)
        print_comma_name(printer, printer->symbols[k]->name);
    ci_text_add(printer->out, ")");
    print_locs(printer->out, kernel->nlocs, kernel->locs);
    ci_text_add(printer->out, "\n");
}

static void
print_extern(Printer *printer, const CiLine *line)
{
    CiText *out = printer->out;
    const CiExternItem *ext = line->ext;
    const CiBuffer **own = printer->wrapper->sides[line->side];
    ci_text_indent(printer->out);
    ci_text_add(out, "%s%d(", ci_extern_print_name(ext->ext), line->number);
    for (int k = 0; k <= ext->noperands; k++) {
        const CiBuffer *buffer = k < ext->noperands ? ext->operands[k] : ext->result;
        const char *name = buffer->kind == CI_BUFFER_scalar ? buffer->name : own[buffer->id]->name;
        ci_text_add(out, k ? ", " : "");
        if (ci_extern_is_whole(ext, k))
            ci_text_add(out, "%s", name);
        else
            print_view(out, name, ext->offsets[k], ext->ranks[k], ext->sizes[k], ext->strides[k]);
    }
    ci_text_add(out, ")");
    print_locs(out, 1, &ext->loc);
    ci_text_add(out, "\n");
}

static void
print_alloc(Printer *printer, const CiLine *line)
{
    const CiBuffer *buffer = line->buffer;
    bool is_host_copy = printer->wrapper->machine->has_memory &&
                        ci_wrapper_is_on_host(printer->wrapper, buffer);
    ci_text_indent(printer->out);
    ci_text_add(printer->out, "%s = ", buffer->name);
    print_device(printer->out, line->at);
    ci_text_add(printer->out, printer->wrapper->pinned[buffer->id] ? "empty_pinned("
                              : is_host_copy                         ? "empty_host("
                                                                     : "empty(");
    print_tuple(printer->out, buffer->rank, buffer->sizes);
    ci_text_add(printer->out, ", ");
    print_tuple(printer->out, buffer->rank, buffer->strides);
    ci_text_add(printer->out, ", '%s')\n", ci_dtype_name(buffer->dtype));
}

static void
print_part(CiText *out, const CiLine *line)
{
    const CiBuffer *buffer = line->buffer;
    ci_text_indent(out);
    ci_text_add(out, "%s = part(%s, ", buffer->name, line->other->name);
    ci_expr_print(out, line->value, CI_STYLE_python);
    ci_text_add(out, ", ");
    print_tuple(out, buffer->rank, buffer->sizes);
    ci_text_add(out, ", ");
    print_tuple(out, buffer->rank, buffer->strides);
    ci_text_add(out, ", '%s')\n", ci_dtype_name(buffer->dtype));
}

static void
print_reuse(Printer *printer, const CiLine *line)
{
    const CiBuffer *buffer = line->buffer;
    ci_text_indent(printer->out);
    ci_text_add(printer->out, "%s = ", buffer->name);
    if (is_same_layout(buffer->rank, buffer->sizes, buffer->strides, line->other))
        ci_text_add(printer->out, "%s", line->other->name);
    else
        print_view(printer->out, line->other->name, NULL, buffer->rank, buffer->sizes,
                   buffer->strides);
    ci_text_add(printer->out, "  # takes over its memory\n");
    ci_text_line(printer->out, "del %s", line->other->name);
}

static void
print_assert(Printer *printer, const CiBuffer *input)
{
    ci_text_indent(printer->out);
    ci_text_add(printer->out, "assert_size_stride(%s, ", input->name);
    print_tuple(printer->out, input->rank, input->sizes);
    ci_text_add(printer->out, ", ");
    print_tuple(printer->out, input->rank, input->strides);
    ci_text_add(printer->out, ")\n");
}

static void
print_return(Printer *printer)
{
    const CiLoops *loops = printer->wrapper->kernels->loops;
    ci_text_indent(printer->out);
    ci_text_add(printer->out, "return (");
    for (int i = 0; i < loops->nresults; i++) {
        const CiResult *result = &loops->results[i];
        ci_text_add(printer->out, i ? ", " : "");
        if (result->is_whole)
            ci_text_add(printer->out, "%s", result->buffer->name);
        else
            print_view(printer->out, result->buffer->name, result->offset, result->rank,
                       result->sizes, result->strides);
    }
    ci_text_add(printer->out, loops->nresults == 1 ? ",)\n" : ")\n");
}

/* Prints `pass` for an empty block. */
static void
close_block(CiText *out, const CiLine *line)
{
    if (ci_line_opens(&line[-1]))
        ci_text_line(out, "pass");
    out->indent -= 4;
}

static void
print_test(CiText *out, const CiLine *line)
{
    ci_text_open(out, "if not item(%s):", line->buffer->name);
    for (int k = 0; k < line->nfrees; k++)
        ci_text_line(out, "del %s", line->frees[k]->name);
    ci_text_line(out, "break");
    out->indent -= 4;
}

/* Prints `u0 = item(buf3)` and the checks of its range. */
static void
print_define(Printer *printer, const CiLine *line)
{
    CiText *out = printer->out;
    const char *name = line->symbol->name;
    bool has_low = line->symbol->low != CI_MINUS_INFINITY,
         has_limit = !ci_expr_equals_const(line->value, CI_INFINITY);
    ci_text_line(out, line->buffer->kind == CI_BUFFER_scalar ? "%s = %s" : "%s = item(%s)", name,
                 line->buffer->name);
    if (!has_low && !has_limit)
        return;
    ci_text_indent(printer->out);
    ci_text_add(out, "check(");
    if (has_low)
        ci_text_add(out, "%" PRId64 " <= ", line->symbol->low);
    ci_text_add(out, "%s", name);
    if (has_limit) {
        ci_text_add(out, " < ");
        ci_expr_print(out, line->value, CI_STYLE_python);
    }
    ci_text_add(out, ", '%s is out of range')", name);
    print_locs(out, 1, &line->loc);
    ci_text_add(out, "\n");
}

static void
print_symbol(CiText *out, const CiLine *line)
{
    if (line->number < 0)
        ci_text_line(out, "%s = %s", line->symbol->name, line->buffer->name);
    else
        ci_text_line(out, "%s = %s.shape[%d]", line->symbol->name, line->buffer->name,
                     line->number);
}

/* Prints lines without a pattern. */
static void
print_other(Printer *printer, const CiLine *line)
{
    switch (line->kind) {
    case CI_LINE_symbol:
        print_symbol(printer->out, line);
        break;
    case CI_LINE_assert_size:
        print_assert(printer, line->buffer);
        break;
    case CI_LINE_alloc:
    case CI_LINE_alloc_result:
        print_alloc(printer, line);
        break;
    case CI_LINE_part:
        print_part(printer->out, line);
        break;
    case CI_LINE_reuse:
        print_reuse(printer, line);
        break;
    case CI_LINE_launch:
        print_launch(printer, line);
        break;
    case CI_LINE_extern:
        print_extern(printer, line);
        break;
    case CI_LINE_define:
        print_define(printer, line);
        break;
    case CI_LINE_test:
        print_test(printer->out, line);
        break;
    case CI_LINE_return:
        print_return(printer);
        break;
    default: /* the end of a block is where the text is indented less */
        break;
    }
}

static void
print_line(Printer *printer, const CiLine *line)
{
    CiText *out = printer->out;
    const char *pattern = ci_line_row(line->kind)->python;
    if (ci_line_closes(line))
        close_block(out, line);
    if (pattern) {
        ci_text_indent(out);
        ci_line_print(out, line, pattern, CI_STYLE_python, NULL);
        print_locs(out, 1, &line->loc);
        ci_text_add(out, "\n");
    } else {
        print_other(printer, line);
    }
    if (ci_line_opens(line))
        out->indent += 4;
}

/* Kernels get all symbols as arguments, also loop variables and symbols that data define. So each is initialised at
 * the start. */
static void
print_head(Printer *printer)
{
    const CiWrapper *w = printer->wrapper;
    const CiLoops *loops = w->kernels->loops;
    ci_text_add(printer->out, "def call(");
    for (int i = 0; i < loops->ninputs; i++)
        ci_text_add(printer->out, "%s%s", i ? ", " : "", loops->buffers[i]->name);
    ci_text_add(printer->out, "):\n");
    printer->out->indent += 4;
    for (int is_later = 0; is_later < 2; is_later++)
        for (int i = 0; i < w->nlines; i++) {
            CiLineKind kind = w->lines[i].kind;
            if (is_later ? kind != CI_LINE_for && kind != CI_LINE_define : kind != CI_LINE_symbol)
                continue;
            CI_PUSH(w->ctx, printer->symbols, printer->nsymbols, printer->capsymbols,
                    w->lines[i].symbol);
            if (is_later)
                ci_text_line(printer->out, "%s = 0", w->lines[i].symbol->name);
        }
}

void
ci_wrapper_print_python(CiText *out, const CiWrapper *wrapper)
{
    Printer printer = {.out = out, .wrapper = wrapper};
    int indent = out->indent;
    print_head(&printer);
    for (int i = 0; i < wrapper->nlines; i++)
        print_line(&printer, &wrapper->lines[i]);
    out->indent = indent;
}
