/* Partitions of a program, and the memory that crosses their boundaries. */
#include "wrapper/partition.h"

/* NULL: a recorder takes the line. Else what the host does there. */
static const char *
why_not_recorded(const CiWrapper *w, const CiLine *line)
{
    if (ci_line_row(line->kind)->record == CI_RECORD_cuts)
        return ci_line_opens(line) || ci_line_closes(line) ? "a jump" : "done by the host";
    if (line->ext && line->side == CI_SIDE_host)
        return "a call on the host";
    if (line->ext && line->ext->ext->call_on)
        return "a call that Python makes";
    if (line->ext && w->options.records_extern && !w->options.records_extern(line->ext))
        return "a call that the device does not record";
    if (line->kernel && line->kernel->nchecks)
        return "the host waits for its checks";
    return NULL;
}

static bool
is_work(const CiLine *line)
{
    return ci_line_row(line->kind)->record == CI_RECORD_records;
}

/* ---- what crosses a border ---- */

typedef struct Border {
    CiContext *ctx;
    CiPartition *of;
    bool *is_inside;  /* per buffer: made in it */
    bool *is_taken, *is_stored, *is_given; /* per buffer */
    CiMap *symbols;
} Border;

static void
note_symbol(void *arg, const CiExpr *symbol)
{
    Border *border = arg;
    if (ci_map_find(border->symbols, CI_KEY(symbol)))
        return;
    ci_map_put(border->symbols, CI_KEY(symbol), (void *)symbol);
    CI_PUSH(border->ctx, border->of->symbols, border->of->nsymbols, border->of->capsymbols, symbol);
}

static void
note_expr(Border *border, const CiExpr *e)
{
    if (e)
        ci_expr_visit_symbols(e, note_symbol, border);
}

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Border *border = arg;
    CiPartition *of = border->of;
    border->is_stored[buffer->id] |= is_stored;
    if (border->is_inside[buffer->id] || border->is_taken[buffer->id])
        return;
    border->is_taken[buffer->id] = true;
    CI_PUSH(border->ctx, of->takes, of->ntakes, of->captakes, buffer);
}

static void
note_scalar(void *arg, const CiBuffer *buffer, int slot)
{
    (void)slot;
    note_use(arg, buffer, false);
}

/* Of what a line is told in numbers: all its expressions. */
static void
note_numbers(Border *border, const CiWrapper *w, const CiLine *line)
{
    const CiKernel *kernel = line->kernel;
    const CiExternItem *ext = line->ext;
    note_expr(border, line->value);
    note_expr(border, line->bytes);
    for (int k = 0; kernel && k < kernel->nsize_args; k++)
        note_expr(border, kernel->size_args[k]);
    if (kernel) {
        CiSym *sym = w->kernels->loops->sym;
        const CiExpr *amounts[] = {ci_kernel_units(sym, kernel), ci_kernel_finish_units(sym, kernel),
                                   kernel->scratch_bytes, kernel->unit_work};
        for (size_t k = 0; k < sizeof amounts / sizeof *amounts; k++)
            note_expr(border, amounts[k]);
    }
    for (int k = 0; ext && k <= ext->noperands; k++) {
        note_expr(border, ext->offsets[k]);
        for (int axis = 0; axis < ext->ranks[k]; axis++) {
            note_expr(border, ext->sizes[k][axis]);
            note_expr(border, ext->strides[k][axis]);
        }
    }
}

static void
note_line(Border *border, const CiWrapper *w, const CiLine *line)
{
    CiLineUse use = ci_line_row(line->kind)->buffer, other = ci_line_row(line->kind)->other;
    note_numbers(border, w, line);
    if (other == CI_USE_dies)
        note_use(border, line->other, false);
    if (use == CI_USE_dies)
        note_use(border, line->buffer, false);
    if (use == CI_USE_born)
        border->is_inside[line->buffer->id] = true;
    ci_line_visit(w, line, note_use, border);
    if (line->kernel)
        ci_kernel_visit_scalars(w->kernels, line->kernel, note_scalar, border);
}

/* Notes that a line outside the partition accesses the buffer. Lines before it count too, because
 * of later iterations of a loop. */
static void
note_look(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Border *border = arg;
    CiPartition *of = border->of;
    (void)is_stored;
    bool is_of_it = border->is_stored[buffer->id] || border->is_inside[buffer->id];
    if (!is_of_it || border->is_given[buffer->id])
        return;
    border->is_given[buffer->id] = true;
    CI_PUSH(border->ctx, of->gives, of->ngives, of->capgives, buffer);
}

static void
find_border(const CiWrapper *w, CiPartition *of)
{
    int n = w->nbuffers + 1;
    Border border = {.ctx = w->ctx, .of = of, .symbols = ci_map_new(w->ctx)};
    border.is_inside = CI_NEW_ARRAY(w->ctx, bool, n);
    border.is_taken = CI_NEW_ARRAY(w->ctx, bool, n);
    border.is_stored = CI_NEW_ARRAY(w->ctx, bool, n);
    border.is_given = CI_NEW_ARRAY(w->ctx, bool, n);
    for (int i = of->first; i <= of->last; i++)
        note_line(&border, w, &w->lines[i]);
    for (int b = 0; b < w->nbuffers; b++) /* the caller looks when all is done */
        if (w->buffers[b]->kind == CI_BUFFER_input || w->buffers[b]->is_result)
            note_look(&border, w->buffers[b], false);
    for (int i = 0; i < w->nlines; i++)
        if (i < of->first || i > of->last)
            ci_line_visit(w, &w->lines[i], note_look, &border);
}

/* ---- where ---- */

/* True if a partition may start with the line. Frees of others' memory come before a partition,
 * allocations for others after it. */
static bool
may_begin(const CiWrapper *w, const CiLine *line)
{
    CiLineUse use = ci_line_row(line->kind)->buffer;
    return !why_not_recorded(w, line) && (is_work(line) || use == CI_USE_born);
}

static bool
may_end(const CiLine *line)
{
    return is_work(line) || ci_line_row(line->kind)->buffer == CI_USE_dies;
}

static bool
may_go_on(const CiWrapper *w, const CiPartition *partition, const CiLine *line)
{
    bool is_of_another = is_work(line) && partition->nlaunches && line->side != partition->side;
    return !is_of_another && !why_not_recorded(w, line);
}

CiPartitions *
ci_partition(const CiWrapper *wrapper)
{
    CiPartitions *made = CI_NEW(wrapper->ctx, CiPartitions);
    made->wrapper = wrapper;
    for (int i = 0; i < wrapper->nlines; i++) {
        CiPartition partition = {.first = i, .last = i - 1};
        if (!may_begin(wrapper, &wrapper->lines[i]))
            continue;
        while (may_go_on(wrapper, &partition, &wrapper->lines[i])) {
            if (is_work(&wrapper->lines[i])) {
                partition.side = wrapper->lines[i].side;
                partition.nlaunches++;
            }
            partition.last = i++;
        }
        i--;
        if (!partition.nlaunches)
            continue;
        while (!may_end(&wrapper->lines[partition.last]))
            partition.last--;
        find_border(wrapper, &partition);
        CI_PUSH(wrapper->ctx, made->list, made->count, made->capacity, partition);
    }
    return made;
}

/* ---- the verifier ---- */

typedef struct Check {
    CiContext *ctx;
    const CiWrapper *wrapper;
    const CiPartition *of;
    int number;
} Check;

static void
refuse(const Check *check, const char *what, const char *name)
{
    ci_fail(check->ctx, CI_ERR_INTERNAL, "partition p%d: %s %s", check->number, name, what);
}

static bool
names(int count, const CiBuffer *const *list, const CiBuffer *buffer)
{
    for (int k = 0; k < count; k++)
        if (list[k] == buffer)
            return true;
    return false;
}

static bool
is_born_inside(const Check *check, const CiBuffer *buffer)
{
    for (int i = check->of->first; i <= check->of->last; i++) {
        const CiLine *line = &check->wrapper->lines[i];
        if (line->buffer == buffer && ci_line_row(line->kind)->buffer == CI_USE_born)
            return true;
    }
    return false;
}

static void
check_inner_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    const Check *check = arg;
    const CiPartition *of = check->of;
    bool is_callers = buffer->kind == CI_BUFFER_input || buffer->is_result;
    if (names(of->ntakes, of->takes, buffer) == is_born_inside(check, buffer))
        refuse(check, "is used, and neither taken nor made, or both", buffer->name);
    if (is_stored && is_callers && !names(of->ngives, of->gives, buffer))
        refuse(check, "is the caller's and stored, but not given", buffer->name);
}

/* Of what a partition makes others see what it gives. */
static void
check_outer_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    const Check *check = arg;
    (void)is_stored;
    if (is_born_inside(check, buffer) && !names(check->of->ngives, check->of->gives, buffer))
        refuse(check, "is made in it and used outside, but not given", buffer->name);
}

static void
check_symbol(void *arg, const CiExpr *symbol)
{
    const Check *check = arg;
    for (int k = 0; k < check->of->nsymbols; k++)
        if (check->of->symbols[k] == symbol)
            return;
    refuse(check, "is a size of a launch, but not given to it", symbol->name);
}

static void
check_partition(Check *check)
{
    const CiWrapper *w = check->wrapper;
    const CiPartition *of = check->of;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        if (i < of->first || i > of->last) {
            ci_line_visit(w, line, check_outer_use, check);
            continue;
        }
        const char *why = why_not_recorded(w, line);
        if (why)
            refuse(check, why, ci_line_row(line->kind)->name);
        if (is_work(line) && line->side != of->side)
            refuse(check, "is of another device", ci_line_row(line->kind)->name);
        ci_line_visit(w, line, check_inner_use, check);
        for (int k = 0; line->kernel && k < line->kernel->nsize_args; k++)
            ci_expr_visit_symbols(line->kernel->size_args[k], check_symbol, check);
    }
}

void
ci_partitions_verify(const CiPartitions *partitions)
{
    const CiWrapper *w = partitions->wrapper;
    Check check = {.ctx = w->ctx, .wrapper = w};
    for (int i = 0; i < w->nlines; i++) {
        int nin = 0;
        for (int k = 0; k < partitions->count; k++)
            nin += partitions->list[k].first <= i && i <= partitions->list[k].last;
        bool is_recordable = is_work(&w->lines[i]) && !why_not_recorded(w, &w->lines[i]);
        if (nin > 1 || (is_recordable && !nin))
            ci_fail(w->ctx, CI_ERR_INTERNAL, "line %d is in %d partitions", i, nin);
    }
    for (check.number = 0; check.number < partitions->count; check.number++) {
        check.of = &partitions->list[check.number];
        check_partition(&check);
    }
}

/* ---- text ---- */

static void
print_names(CiText *out, const char *word, int count, const CiBuffer *const *buffers)
{
    if (!count)
        return;
    ci_text_indent(out);
    ci_text_add(out, "%s", word);
    for (int k = 0; k < count; k++)
        ci_text_add(out, k ? ", %s" : " %s", buffers[k]->name);
    ci_text_add(out, "\n");
}

static void
print_partition(CiText *out, const CiPartition *of, int number)
{
    ci_text_line(out, "p%d: lines %d to %d on device %d", number, of->first, of->last,
                 of->side - CI_SIDE_device);
    out->indent += 2;
    print_names(out, "takes", of->ntakes, of->takes);
    print_names(out, "gives", of->ngives, of->gives);
    if (of->nsymbols) {
        ci_text_indent(out);
        ci_text_add(out, "sizes");
        for (int k = 0; k < of->nsymbols; k++)
            ci_text_add(out, k ? ", %s" : " %s", of->symbols[k]->name);
        ci_text_add(out, "\n");
    }
    out->indent -= 2;
}

/* Prints a line between partitions, except those that every program begins and ends with. */
static void
print_border(CiText *out, const CiWrapper *w, int i)
{
    const CiLine *line = &w->lines[i];
    const char *why = why_not_recorded(w, line);
    if (!why || line->kind == CI_LINE_symbol || line->kind == CI_LINE_assert_size ||
        line->kind == CI_LINE_return)
        return;
    const char *what = line->kernel ? line->kernel->name
                       : line->ext  ? ci_extern_print_name(line->ext->ext)
                                    : ci_line_row(line->kind)->name;
    ci_text_line(out, "# line %d, %s: %s", i, what, why);
}

void
ci_partitions_print(CiText *out, const CiPartitions *partitions)
{
    const CiWrapper *w = partitions->wrapper;
    int number = 0;
    ci_text_line(out, "partitions %s {", w->kernels->loops->name);
    out->indent += 2;
    for (int i = 0; i < w->nlines; i++) {
        bool is_first = number < partitions->count && partitions->list[number].first == i;
        if (is_first)
            print_partition(out, &partitions->list[number], number);
        number += is_first;
        print_border(out, w, i);
    }
    out->indent -= 2;
    ci_text_line(out, "}");
}
