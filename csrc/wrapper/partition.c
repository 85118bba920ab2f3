/* Partitions of a program, and the memory that crosses their boundaries. */
#include "wrapper/partition.h"

#include "analysis/choices.h"
#include "analysis/cost.h"
#include "analysis/templates.h"

/* NULL if a recorder can record the line, otherwise what the host does there. */
static const char *
why_not_recorded(const CiWrapper *w, const CiLine *line)
{
    if (ci_line_row(line->kind)->record == CI_RECORD_cuts)
        return ci_line_opens(line) || ci_line_closes(line) ? "a jump" : "done by the host";
    if (line->ext && line->side == CI_SIDE_host)
        return "a call on the host";
    if (line->ext && line->ext->ext->call_on)
        return "a call that Python makes";
    if (line->ext && ci_op_has(line->ext->op, CI_FACT_collective))
        return "a collective of several devices";
    if (line->ext && w->machine->records_extern && !w->machine->records_extern(line->ext))
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

typedef struct Boundary {
    CiContext *ctx;
    CiPartition *of;
    bool *is_inside;  /* per buffer: made in it */
    bool *is_taken, *is_stored, *is_given; /* per buffer */
    CiMap *symbols;
} Boundary;

/* Marks the variable of a loop of the partition as one that is not given to it. */
static void
note_loop(Boundary *boundary, const CiLine *line)
{
    if (line->kind == CI_LINE_for)
        ci_map_put(boundary->symbols, CI_KEY(line->symbol), (void *)line->symbol);
}

static void
note_symbol(void *arg, const CiExpr *symbol)
{
    Boundary *boundary = arg;
    if (ci_map_find(boundary->symbols, CI_KEY(symbol)))
        return;
    ci_map_put(boundary->symbols, CI_KEY(symbol), (void *)symbol);
    CI_PUSH(boundary->ctx, boundary->of->symbols, boundary->of->nsymbols, boundary->of->capsymbols, symbol);
}

static void
note_expr(Boundary *boundary, const CiExpr *e)
{
    if (e)
        ci_expr_visit_symbols(e, note_symbol, boundary);
}

static void
note_use(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Boundary *boundary = arg;
    CiPartition *of = boundary->of;
    boundary->is_stored[buffer->id] |= is_stored;
    if (boundary->is_inside[buffer->id] || boundary->is_taken[buffer->id])
        return;
    boundary->is_taken[buffer->id] = true;
    CI_PUSH(boundary->ctx, of->takes, of->ntakes, of->captakes, buffer);
}

static void
note_scalar(void *arg, const CiBuffer *buffer, int slot)
{
    (void)slot;
    note_use(arg, buffer, false);
}

/* Of what a line is told in numbers: all its expressions. */
static void
note_numbers(Boundary *boundary, const CiLine *line)
{
    const CiKernel *kernel = line->kernel;
    const CiExternItem *ext = line->ext;
    note_expr(boundary, line->value);
    note_expr(boundary, line->bytes);
    for (int k = 0; kernel && k < kernel->nsize_args; k++)
        note_expr(boundary, kernel->size_args[k]);
    if (kernel)
        note_expr(boundary, kernel->unit_work);
    for (int k = 0; ext && k <= ext->noperands; k++) {
        note_expr(boundary, ext->offsets[k]);
        for (int axis = 0; axis < ext->ranks[k]; axis++) {
            note_expr(boundary, ext->sizes[k][axis]);
            note_expr(boundary, ext->strides[k][axis]);
        }
    }
}

static void
note_line(Boundary *boundary, const CiWrapper *w, const CiLine *line)
{
    CiLineUse use = ci_line_row(line->kind)->buffer, other = ci_line_row(line->kind)->other;
    note_loop(boundary, line);
    note_numbers(boundary, line);
    if (other == CI_USE_last)
        note_use(boundary, line->other, false);
    if (use == CI_USE_last)
        note_use(boundary, line->buffer, false);
    if (use == CI_USE_defines)
        boundary->is_inside[line->buffer->id] = true;
    ci_line_visit(w, line, note_use, boundary);
    if (line->kernel)
        ci_kernel_visit_scalars(w->kernels, line->kernel, note_scalar, boundary);
}

/* Notes that a line outside the partition accesses the buffer. Lines before it count too, because
 * of later iterations of a loop. */
static void
note_look(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Boundary *boundary = arg;
    CiPartition *of = boundary->of;
    (void)is_stored;
    bool is_of_it = boundary->is_stored[buffer->id] || boundary->is_inside[buffer->id];
    if (!is_of_it || boundary->is_given[buffer->id])
        return;
    boundary->is_given[buffer->id] = true;
    CI_PUSH(boundary->ctx, of->gives, of->ngives, of->capgives, buffer);
}

static void
find_boundary(const CiWrapper *w, CiPartition *of)
{
    int n = w->nbuffers + 1;
    Boundary boundary = {.ctx = w->ctx, .of = of, .symbols = ci_map_new(w->ctx)};
    boundary.is_inside = CI_NEW_ARRAY(w->ctx, bool, n);
    boundary.is_taken = CI_NEW_ARRAY(w->ctx, bool, n);
    boundary.is_stored = CI_NEW_ARRAY(w->ctx, bool, n);
    boundary.is_given = CI_NEW_ARRAY(w->ctx, bool, n);
    for (int i = of->first; i <= of->last; i++)
        note_line(&boundary, w, &w->lines[i]);
    for (int b = 0; b < w->nbuffers; b++) /* the caller looks when all is done */
        if (w->buffers[b]->kind == CI_BUFFER_input || w->buffers[b]->is_result)
            note_look(&boundary, w->buffers[b], false);
    for (int i = 0; i < w->nlines; i++)
        if (i < of->first || i > of->last)
            ci_line_visit(w, &w->lines[i], note_look, &boundary);
}

/* ---- where ---- */

/* True if a partition may start with the line. Frees of others' memory come before a partition,
 * allocations for others after it. */
static bool
may_begin(const CiWrapper *w, const CiLine *line)
{
    CiLineUse use = ci_line_row(line->kind)->buffer;
    return !why_not_recorded(w, line) && (is_work(line) || use == CI_USE_defines);
}

static bool
may_end(const CiLine *line)
{
    return is_work(line) || line->kind == CI_LINE_end || ci_line_row(line->kind)->buffer == CI_USE_last;
}

static bool
may_continue(const CiWrapper *w, const CiPartition *partition, const CiLine *line)
{
    bool is_of_another = is_work(line) && partition->nlaunches && line->side != partition->side;
    return !is_of_another && !why_not_recorded(w, line);
}

static void
add_line(CiPartition *partition, const CiLine *line, int64_t times)
{
    if (is_work(line)) {
        partition->side = line->side;
        partition->nlaunches += (int)times;
    }
}

/* False for memory that an iteration allocates and frees: a recording would use one block of memory for
 * all iterations. */
static bool
is_for_every_iteration(const CiWrapper *w, const CiPartition *partition, const CiLine *line)
{
    switch (line->kind) {
    case CI_LINE_alloc:
    case CI_LINE_alloc_result:
    case CI_LINE_reuse:
    case CI_LINE_free:
        return false;
    case CI_LINE_swap:
    case CI_LINE_end:
        return true;
    default:
        return may_continue(w, partition, line);
    }
}

/* Adds a loop to the partition; the line of its end, or -1 where something in it is not for a recorder. */
static int
add_loop(const CiWrapper *w, CiPartition *partition, int i)
{
    CiPartition longer = *partition;
    int64_t times[CI_MAX_RANK] = {1}, iterations,
            most = ci_choice(w->kernels->machine, CI_CHOICE_recorded_most);
    int depth = 0;
    do {
        const CiLine *line = &w->lines[i++];
        bool opens = line->kind == CI_LINE_for;
        if (opens) {
            if (line->is_parallel || depth + 1 == CI_MAX_RANK || !ci_expr_is_const(line->value, &iterations) ||
                iterations < 1 || iterations > most / times[depth])
                return -1;
            times[depth + 1] = times[depth] * iterations;
        } else if (!is_for_every_iteration(w, &longer, line))
            return -1;
        depth += opens - (line->kind == CI_LINE_end);
        add_line(&longer, line, times[depth]);
        if (longer.nlaunches > most)
            return -1;
    } while (depth);
    *partition = longer;
    return i - 1;
}

/* Adds what begins at a line, as far as it can be part of the partition; its last line, or -1. */
static int
extend(const CiWrapper *w, CiPartition *partition, int i, bool takes_loops)
{
    const CiLine *line = &w->lines[i];
    if (line->kind == CI_LINE_for)
        return takes_loops ? add_loop(w, partition, i) : -1;
    if (!may_continue(w, partition, line))
        return -1;
    add_line(partition, line, 1);
    return i;
}

/* The partition that begins at a line. *taken: the last line that a recorder takes; the partition ends with the
 * last one that needs it. */
static CiPartition
grow(const CiWrapper *w, int first, bool takes_loops, int *taken)
{
    CiPartition partition = {.first = first, .last = first - 1};
    for (int last; (last = extend(w, &partition, partition.last + 1, takes_loops)) >= 0;)
        partition.last = last;
    *taken = partition.last;
    while (partition.nlaunches && !may_end(&w->lines[partition.last]))
        partition.last--;
    return partition;
}

/* True if the partition itself allocates and frees the memory of the buffer, and no other buffer has it. */
static bool
is_own(const CiWrapper *w, const CiPartition *of, const CiBuffer *buffer)
{
    int ends = 0;
    for (int i = of->first; i <= of->last; i++) {
        const CiLine *line = &w->lines[i];
        bool is_end = line->kind == CI_LINE_alloc || line->kind == CI_LINE_free;
        ends += is_end && line->buffer == buffer;
    }
    return ends == 2;
}

/* True if no buffer of the partition exchanges memory with one outside, because a recording keeps its
 * own memory. */
static bool
keeps_own(const CiWrapper *w, const CiPartition *of)
{
    for (int i = of->first; i <= of->last; i++) {
        const CiLine *line = &w->lines[i];
        if (line->kind == CI_LINE_swap && !(is_own(w, of, line->buffer) && is_own(w, of, line->other)))
            return false;
    }
    return true;
}

typedef struct Touched {
    bool *is_seen;
    int64_t bytes; /* CI_INFINITY: not known */
} Touched;

static void
add_bytes(void *arg, const CiBuffer *buffer, bool is_stored)
{
    Touched *touched = arg;
    (void)is_stored;
    if (touched->is_seen[buffer->id] || touched->bytes == CI_INFINITY)
        return;
    CiAmount bytes = ci_cost_of_buffer(buffer);
    touched->is_seen[buffer->id] = true;
    touched->bytes = bytes.unknowns ? CI_INFINITY : touched->bytes + ci_amount_likely(bytes);
}

/* True if the host could not launch the kernels as fast as they run: there are many, of little memory. */
static bool
is_many_and_short(const CiWrapper *w, const CiPartition *partition)
{
    const CiMachine *machine = w->kernels->machine;
    bool has_loop = false;
    if (partition->nlaunches < ci_choice(machine, CI_CHOICE_recorded_iterations))
        return false;
    Touched touched = {.is_seen = CI_NEW_ARRAY(w->ctx, bool, w->nbuffers + 1)};
    for (int i = partition->first; i <= partition->last; i++) {
        has_loop |= w->lines[i].kind == CI_LINE_for;
        ci_line_visit(w, &w->lines[i], add_bytes, &touched);
    }
    return has_loop && touched.bytes <= ci_choice(machine, CI_CHOICE_recorded_bytes);
}

/* Where nothing is recorded, partitions are what could be. */
static bool
takes_all(const CiWrapper *w)
{
    return ci_wrapper_records_all(w) || !w->machine->records;
}

CiPartitions *
ci_partition(const CiWrapper *wrapper)
{
    CiPartitions *made = CI_NEW(wrapper->ctx, CiPartitions);
    made->wrapper = wrapper;
    for (int i = 0; i < wrapper->nlines; i++) {
        if (wrapper->lines[i].kind != CI_LINE_for && !may_begin(wrapper, &wrapper->lines[i]))
            continue;
        int taken;
        CiPartition partition = grow(wrapper, i, true, &taken);
        if (!keeps_own(wrapper, &partition))
            partition = grow(wrapper, i, false, &taken);
        i = taken > i ? taken : i;
        if (!partition.nlaunches)
            continue;
        if (takes_all(wrapper) || is_many_and_short(wrapper, &partition)) {
            find_boundary(wrapper, &partition);
            CI_PUSH(wrapper->ctx, made->list, made->count, made->capacity, partition);
        }
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
        if (line->buffer == buffer && ci_line_row(line->kind)->buffer == CI_USE_defines)
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
    for (int i = check->of->first; i <= check->of->last; i++)
        if (check->wrapper->lines[i].kind == CI_LINE_for && check->wrapper->lines[i].symbol == symbol)
            return;
    for (int k = 0; k < check->of->nsymbols; k++)
        if (check->of->symbols[k] == symbol)
            return;
    refuse(check, "is a size of a launch, but not given to it", symbol->name);
}

/* Loops are whole, and what exchanges buffers is in one. */
static const char *
why_not_in(const CiWrapper *w, const CiLine *line, int *depth)
{
    bool opens = line->kind == CI_LINE_for && !line->is_parallel, closes = line->kind == CI_LINE_end;
    *depth += opens - closes;
    bool is_of_loop = opens || (closes && *depth >= 0) || (line->kind == CI_LINE_swap && *depth > 0);
    return is_of_loop ? NULL : why_not_recorded(w, line);
}

static void
check_partition(Check *check)
{
    const CiWrapper *w = check->wrapper;
    const CiPartition *of = check->of;
    int depth = 0;
    for (int i = 0; i < w->nlines; i++) {
        const CiLine *line = &w->lines[i];
        if (i < of->first || i > of->last) {
            ci_line_visit(w, line, check_outer_use, check);
            continue;
        }
        const char *why = why_not_in(w, line, &depth);
        if (why)
            refuse(check, why, ci_line_row(line->kind)->name);
        if (is_work(line) && line->side != of->side)
            refuse(check, "is of another device", ci_line_row(line->kind)->name);
        ci_line_visit(w, line, check_inner_use, check);
        for (int k = 0; line->kernel && k < line->kernel->nsize_args; k++)
            ci_expr_visit_symbols(line->kernel->size_args[k], check_symbol, check);
    }
    if (depth)
        refuse(check, "is only a part of a loop", "it");
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
        bool is_recordable = takes_all(w) && is_work(&w->lines[i]) && !why_not_recorded(w, &w->lines[i]);
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
print_boundary(CiText *out, const CiWrapper *w, int i)
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
        if (!number || i > partitions->list[number - 1].last)
            print_boundary(out, w, i);
    }
    out->indent -= 2;
    ci_text_line(out, "}");
}
