/* Runs one golden file and prints what each level makes of it.
 *
 *   golden FILE
 *   golden variants FILE...   for each kernel that the GPU makes of the program: its variants, which are
 *                             of its own text, have its procs but for ranges of symbols
 *   golden costs FILE...      for each proc that the GPU makes of a graph: its accesses of global
 *                             memory, their bytes, operations and barriers
 *
 * The file: lines of `# word: value` (passes: those to run, `all` for the pipeline; loop_passes: those over loops to run before
 * loops are printed, the others do not run; proc_passes: those over procs to run, where the file holds procs; dump: the
 * levels to print, graph when not given, `expand` for procs before the first pass, `labels` for their heads and loops; fusion, trees,
 * short_rows, tiles, splits, templates, batches, pools, device_memory, records, unasked: 0 or 1;
 * online: bytes of a row from which on reductions of it are one walk, scans: rows up to which scans are in parts; choices: as the option has them), then a graph, loops, kernels (and lines of these) or procs as text. What stands
 * behind a line that begins with `---` is what was expected, and not read here. For each level
 * comes a line
 * `--- expected LEVEL` and its text; when a step fails, `--- expected error` and the message, and
 * nothing more. A text form is also read back and printed again; a difference is an error of its
 * own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/templates.h"
#include "base/map.h"
#include "base/os.h"
#include "codegen/codegen.h"
#include "device/cuda/cuda.h"
#include "device/device.h"
#include "analysis/choices.h"
#include "ir/kernel.h"
#include "ir/range.h"
#include "loops/loops.h"
#include "lower/lower.h"
#include "passes/pass.h"
#include "schedule/schedule.h"
#include "wrapper/partition.h"
#include "wrapper/wrapper.h"

typedef struct Run {
    const char *text;   /* the program */
    const char *lines;  /* behind kernels: those of the program, not made of them; NULL */
    const char *passes; /* comma-separated, "" for none */
    const char *loop_passes; /* before the loops are printed; "": all, after that */
    const char *proc_passes; /* of procs that are given */
    const char *dump;
    const char *device, *backend, *choices;
    bool fusion, trees, short_rows, tiles, splits, templates, batches, pools, device_memory, records,
        unasked; /* records only loops that gain */
    int64_t online, scans;
    CiGraph *graph;
    CiLoops *loops;
    CiKernels *kernels;
    const CiMachine *machine;
} Run;

/* The value of a header line, or what it is when it does not stand there. */
static const char *
find_header(CiContext *ctx, const char *file, const char *word, const char *missing)
{
    char *key = ci_format(ctx, "# %s:", word);
    for (const char *line = file; *line == '#'; line = strchr(line, '\n') + 1) {
        size_t length = strcspn(line, "\n"), skip = strlen(key);
        if (strncmp(line, key, skip) == 0) {
            while (line[skip] == ' ')
                skip++;
            return ci_copy_text(ctx, line + skip, length - skip);
        }
        if (!line[length])
            break;
    }
    return missing;
}

static bool
has_word(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length) {
        bool begins = at == list || at[-1] == ',' || at[-1] == ' ';
        if (begins && (at[length] == 0 || at[length] == ',' || at[length] == ' '))
            return true;
    }
    return false;
}

/* Whether the text is of that level: its word begins a line. */
static bool
is_of_level(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, word, length) == 0 && line[length] == ' ')
            return true;
    }
    return false;
}

static void
show(const char *level, const char *text)
{
    printf("--- expected %s\n%s", level, text);
}

/* ---- levels ---- */

static void
run_passes(CiContext *ctx, Run *run)
{
    if (strcmp(run->passes, "all") == 0) {
        (void)ci_passes_run(run->graph, &(CiPassPlan){.verify = true}, (CiExtraPasses){0});
        return;
    }
    for (const char *at = run->passes; *at;) {
        size_t length = strcspn(at, ", ");
        char *name = ci_copy_text(ctx, at, length);
        if (length && !ci_passes_run_one(run->graph, name))
            ci_fail(ctx, CI_ERR_VALUE, "no pass is called %s", name);
        ci_graph_verify(run->graph);
        at += length + strspn(at + length, ", ");
    }
}

static void
show_graph(CiContext *ctx, Run *run)
{
    CiText once = ci_text_new(ctx), twice = ci_text_new(ctx), copied = ci_text_new(ctx);
    ci_graph_print(&once, run->graph);
    ci_graph_print(&twice, ci_graph_parse(ctx, once.data));
    ci_graph_print(&copied, ci_graph_copy_to(ctx, run->graph));
    if (strcmp(once.data, twice.data) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "read back, the graph prints as\n%s", twice.data);
    if (strcmp(once.data, copied.data) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "copied, the graph prints as\n%s", copied.data);
    show("graph", once.data);
}

static void
show_ranges(CiContext *ctx, Run *run)
{
    CiText text = ci_text_new(ctx);
    ci_ranges_print(&text, run->graph);
    show("ranges", text.data);
}

static void
show_loops(CiContext *ctx, Run *run)
{
    CiText once = ci_text_new(ctx), twice = ci_text_new(ctx);
    ci_loops_print(&once, run->loops);
    ci_loops_print(&twice, ci_loops_parse(ctx, once.data));
    if (strcmp(once.data, twice.data) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "read back, the loops print as\n%s", twice.data);
    show("loops", once.data);
}

/* Any frame is worth it, and what the file says. */
static const CiMachine *
make_lower_machine(CiContext *ctx, const Run *run)
{
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    *machine = run->scans ? ci_machine(CI_MACHINE_sm_90) : ci_machine_of_cpu(32, 16);
    machine->device = run->device;
    machine->has_memory = run->device_memory;
    ci_choices_set(ctx, machine, "border_bytes=1");
    if (run->scans)
        ci_choices_set(ctx, machine, ci_format(ctx, "scan_rows=%lld, scan_columns=%lld",
                                               (long long)run->scans, (long long)run->scans));
    if (run->online)
        ci_choices_set(ctx, machine, ci_format(ctx, "online_bytes=%lld, online_exp_bytes=%lld",
                                               (long long)run->online, (long long)run->online));
    return machine;
}

/* The options of the file. */
static CiOptions
run_options(const Run *run)
{
    CiOptions options;
    ci_options_default(&options);
    options.arch = "x86-64-v3";
    options.library_threads = 1;
    options.numerics = run->online ? "fast" : "numpy";
    options.fusion = run->fusion;
    options.pools = run->pools;
    options.graphs = !run->unasked;
    return options;
}

static const CiMachine *make_machine(CiContext *ctx, const Run *run);

static void
make_loops(CiContext *ctx, Run *run)
{
#ifndef GOLDEN_LOWER
    (void)ctx;
#endif
    CiOptions options = run_options(run);
    if (!run->loops && run->fusion)
        ci_graph_attention(run->graph, make_machine(ctx, run), false);
    if (!run->loops)
        run->loops = ci_lower(run->graph, make_lower_machine(ctx, run), &options);
    ci_loops_verify(run->loops);
}

/* A library call that the device does itself. */
static bool
takes_products(const CiExternItem *item)
{
    return strcmp(item->ext->name, "matmul") == 0;
}

/* Fixed here, so that no dump depends on the machine; a backend fills in what is its own. */
static const CiMachine *
make_machine(CiContext *ctx, const Run *run)
{
    CiMachine *machine = CI_NEW(ctx, CiMachine);
    *machine = ci_machine_of_cpu(32, 16);
    CiOptions options = run_options(run);
    const CiBackend *backend = ci_backend_find(NULL, run->device, run->backend);
    if (backend)
        backend->compiler->fill_machine(machine, &options);
    machine->device = run->device;
    machine->backend = run->backend;
    machine->has_memory = run->device_memory;
    machine->records = run->records;
    machine->takes_extern = takes_products;
    machine->has_collectives = run->device_memory;
    if (strcmp(run->device, "cpu") == 0) {
        machine->has_trees = run->trees;
        machine->has_short_rows = run->short_rows;
        machine->has_rows_of_any_size = false;
        machine->tile_rows = run->tiles ? CI_STAGE_TILE : 0;
        machine->has_templates = machine->has_margins = run->templates;
        machine->has_batches = run->batches;
        machine->chains_running = run->splits;
        machine->row_bytes = 256 * 1024;
        machine->max_buffers = 64;
    }
    ci_choices_set(ctx, machine, run->choices);
    return machine;
}

/* Runs the passes over loops; with the header loop_passes only those that it lists. */
static void
rewrite_loops(CiContext *ctx, Run *run)
{
    CiOptions options = run_options(run);
    CiText skip = ci_text_new(ctx);
    run->machine = make_machine(ctx, run);
    for (int k = 0; k < ci_loop_pass_count(); k++)
        if (*run->loop_passes && !has_word(run->loop_passes, ci_loop_pass_at(k)->name))
            ci_text_add(&skip, "%s,", ci_loop_pass_at(k)->name);
    CiPassPlan plan = {.verify = true, .skip = skip.data};
    if (run->loops)
        ci_loop_passes_run(run->loops, run->machine, &options, &plan);
}

static void
make_kernels(CiContext *ctx, Run *run)
{
    CiOptions options = run_options(run);
    if (is_of_level(run->text, "kernels"))
        run->kernels = ci_kernels_parse(ctx, run->text, run->machine);
    else
        run->kernels = ci_schedule(run->loops, run->machine, &options);
    ci_kernels_verify(run->kernels);
}

static CiText
source_of(CiContext *ctx, const CiKernels *kernels)
{
    CiText text = ci_text_new(ctx);
    CiOptions options;
    const CiBackend *backend =
        ci_backend_find(NULL, kernels->machine->device, kernels->machine->backend);
    ci_options_default(&options);
    options.arch = "x86-64-v3";
    if (backend && backend->compiler->emit)
        backend->compiler->emit(&text, kernels, &options);
    return text;
}

/* What is read back prints as it did, and makes the same source. */
static void
show_kernels(CiContext *ctx, Run *run)
{
    CiText once = ci_text_new(ctx);
    ci_kernels_print(&once, run->kernels);
    ci_kernels_verify_text(run->kernels);
    CiKernels *again = ci_kernels_parse(ctx, once.data, run->kernels->machine);
    ci_kernels_verify(again);
    const char *source = source_of(ctx, run->kernels).data, *same = source_of(ctx, again).data;
    if (source && strcmp(source, same) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "read back, the kernels\n%sbecome\n%s", once.data, same);
    if (has_word(run->dump, "kernels"))
        show("kernels", once.data);
}

/* What is read back prints as it did; how many accesses are not proved stands behind. */
static void
show_procs(CiContext *ctx, const char *level, const CiProcs *procs)
{
    CiText text = ci_text_new(ctx);
    int unproved = ci_procs_verify(procs);
    ci_procs_verify_text(procs);
    ci_procs_print(&text, procs);
    if (unproved)
        ci_text_line(&text, "# unproved: %d", unproved);
    show(level, text.data);
}

/* Given procs, after the passes of the file, which are those of its device. */
static void
show_given_procs(CiContext *ctx, const Run *run)
{
    CiProcs *procs = ci_procs_parse(ctx, run->text);
    CiText skip = ci_text_new(ctx);
    for (int k = 0; k < ci_proc_pass_count(); k++)
        if (!has_word(run->proc_passes, ci_proc_pass_at(k)->name))
            ci_text_add(&skip, "%s,", ci_proc_pass_at(k)->name);
    if (*run->proc_passes)
        ci_proc_passes_run(procs, make_machine(ctx, run), &(CiPassPlan){.verify = true, .skip = skip.data});
    show_procs(ctx, "procs", procs);
}

/* How the machine runs the axes of kernels: heads of procs, and loops, before the first pass. */
static void
show_labels(CiContext *ctx, const CiProcs *procs)
{
    CiText all = ci_text_new(ctx), labels = ci_text_new(ctx);
    ci_procs_print(&all, procs);
    for (const char *line = all.data, *end; *line; line = end + 1) {
        const char *word = line + strspn(line, " ");
        end = strchr(line, '\n');
        if (!strncmp(word, "proc ", 5) || !strncmp(word, "for ", 4))
            ci_text_line(&labels, "%.*s", (int)(end - line), line);
    }
    show("labels", labels.data);
}

/* As the statements of kernels begin, and as the backend runs or prints them. */
static void
show_statements(CiContext *ctx, const Run *run)
{
    CiOptions options;
    ci_options_default(&options);
    options.verify = true;
    options.arch = "x86-64-v3";
    const CiBackend *backend = ci_backend_find(NULL, run->device, run->backend);
    if (has_word(run->dump, "expand"))
        show_procs(ctx, "expand", ci_expand(run->kernels));
    if (has_word(run->dump, "labels"))
        show_labels(ctx, ci_expand(run->kernels));
    if (has_word(run->dump, "procs") && backend && backend->compiler->lower)
        show_procs(ctx, "procs", backend->compiler->lower(run->kernels, &options));
}

/* The lines of the file, or those that are made of the kernels. What is read back prints as it did. */
static CiWrapper *
make_lines(CiContext *ctx, const Run *run)
{
    CiText once = ci_text_new(ctx), twice = ci_text_new(ctx), program = ci_text_new(ctx), again = ci_text_new(ctx);
    CiOptions options = run_options(run);
    const CiShapeEnv *env = run->graph ? run->graph->env : NULL;
    CiWrapper *lines = run->lines ? ci_wrapper_parse(run->kernels, &options, env, run->lines)
                                  : ci_wrap(run->kernels, &options, env);
    ci_wrapper_verify(lines);
    ci_wrapper_print(&once, lines);
    ci_wrapper_print_python(&program, lines);
    CiWrapper *read = ci_wrapper_parse(run->kernels, &options, env, once.data);
    ci_wrapper_print(&twice, read);
    ci_wrapper_print_python(&again, read);
    if (strcmp(once.data, twice.data) != 0 || strcmp(program.data, again.data) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "read back, the lines print as\n%s%s", twice.data, again.data);
    return lines;
}

static void
show_lines(CiContext *ctx, const Run *run)
{
    CiText text = ci_text_new(ctx);
    ci_wrapper_print(&text, make_lines(ctx, run));
    show("lines", text.data);
}

static void
show_partitions(CiContext *ctx, const Run *run)
{
    CiText text = ci_text_new(ctx);
    CiPartitions *partitions = ci_partition(make_lines(ctx, run));
    ci_partitions_verify(partitions);
    ci_partitions_print(&text, partitions);
    show("partitions", text.data);
}

/* Of kernels that are read back it is the same. */
static void
show_wrapper(CiContext *ctx, const Run *run)
{
    CiText text = ci_text_new(ctx);
    CiText once = ci_text_new(ctx), again = ci_text_new(ctx);
    CiOptions options = run_options(run);
    const CiShapeEnv *env = run->graph ? run->graph->env : NULL;
    CiWrapper *wrapper = make_lines(ctx, run);
    ci_wrapper_print_python(&text, wrapper);
    if (run->lines) {
        show("wrapper", text.data);
        return;
    }
    ci_kernels_print(&once, run->kernels);
    CiKernels *read = ci_kernels_parse(ctx, once.data, run->kernels->machine);
    ci_wrapper_print_python(&again, ci_wrap(read, &options, env));
    if (strcmp(text.data, again.data) != 0)
        ci_fail(ctx, CI_ERR_INTERNAL, "the wrapper of kernels that are read back is\n%s",
                again.data);
    show("wrapper", text.data);
}

static void
show_source(CiContext *ctx, const Run *run)
{
    CiText text = source_of(ctx, run->kernels);
    show("source", text.data ? text.data : "");
}

static void
run_levels(CiContext *ctx, void *arg)
{
    Run *run = arg;
    bool is_kernels = is_of_level(run->text, "kernels");
    if (is_of_level(run->text, "procs")) {
        show_given_procs(ctx, run);
        return;
    }
    if (is_of_level(run->text, "loops")) {
        run->loops = ci_loops_parse(ctx, run->text);
    } else if (!is_kernels) {
        run->graph = ci_graph_parse(ctx, run->text);
        ci_graph_verify(run->graph);
        run_passes(ctx, run);
        if (has_word(run->dump, "graph"))
            show_graph(ctx, run);
        if (has_word(run->dump, "ranges"))
            show_ranges(ctx, run);
    }
    bool has_source = has_word(run->dump, "source"), has_wrapper = has_word(run->dump, "wrapper");
    bool has_partitions = has_word(run->dump, "partitions"), has_lines = has_word(run->dump, "lines");
    bool has_kernels = has_source || has_lines || has_wrapper || has_partitions || has_word(run->dump, "kernels") ||
                       has_word(run->dump, "expand") || has_word(run->dump, "labels") || has_word(run->dump, "procs");
    if (!has_kernels && !has_word(run->dump, "loops"))
        return;
    if (!is_kernels)
        make_loops(ctx, run);
    if (*run->loop_passes)
        rewrite_loops(ctx, run);
    if (has_word(run->dump, "loops"))
        show_loops(ctx, run);
    if (!has_kernels)
        return;
    if (!*run->loop_passes)
        rewrite_loops(ctx, run);
    make_kernels(ctx, run);
    show_kernels(ctx, run);
    show_statements(ctx, run);
    if (has_lines)
        show_lines(ctx, run);
    if (has_wrapper)
        show_wrapper(ctx, run);
    if (has_partitions)
        show_partitions(ctx, run);
    if (has_source)
        show_source(ctx, run);
}

/* ---- variants of the GPU's kernels ---- */

typedef struct Variants {
    CiContext *ctx;
    const CiKernels *kernels;
    const CiProcs *procs;
    int count;
} Variants;

static const char *
text_of_procs(CiContext *ctx, const CiProcs *procs, const CiKernel *kernel)
{
    CiProcs own = *procs;
    CiText text = ci_text_new(ctx);
    own.procs = CI_NEW_ARRAY(ctx, CiProc *, procs->nprocs + 1);
    own.nprocs = 0;
    for (int side = 0; side < 2; side++) {
        const CiProc *proc = ci_procs_find(procs, kernel->name, side);
        if (proc)
            own.procs[own.nprocs++] = (CiProc *)(uintptr_t)proc;
    }
    ci_procs_print(&text, &own);
    return text.data;
}

static int64_t
within(const CiExpr *symbol, int64_t value)
{
    return value < symbol->low ? symbol->low : value > symbol->high ? symbol->high : value;
}

typedef struct Narrowed {
    const char *text;
    const CiKernels *alone;
    CiCudaClass class;
} Narrowed;

static void
lower_variant(CiContext *ctx, void *arg)
{
    const Narrowed *narrowed = arg;
    (void)ci_gpu_lower(
        ci_cuda_parse_variant(ctx, narrowed->text, narrowed->alone, &narrowed->class, true),
        true, true);
}

/* Sizes that no call can bring, for guards of the graph say so, may leave an order without chunks. */
static void
check_classes(const Variants *v, const CiKernel *kernel, Narrowed *narrowed)
{
    static const int64_t sizes[] = {1, 5, 24, 1000, 4096, 70000};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (int k = 0; k < COUNT; k++) {
        int64_t values[CI_CUDA_MAX_SIZES];
        for (int n = 0; n < kernel->nsize_args; n++)
            values[n] = within(kernel->size_args[n], sizes[(k + n) % COUNT]);
        if (!ci_cuda_find_class(kernel, values, &narrowed->class))
            continue;
        CiStatus status = ci_protect(v->ctx, lower_variant, narrowed);
        const char *why = status ? ci_format(v->ctx, "%s", ci_context_message(v->ctx)) : NULL;
        if (why && strcmp(why, "a size or an index is divided by zero") != 0 && !strstr(why, "a split has chunks"))
            ci_fail(v->ctx, status, "%s", why);
    }
}

/* As it is, the kernel's own text makes the same procs, letter by letter. Of sizes of a class the
 * kernel is verified, and so is what each pass makes of it. */
static void
check_variants(void *arg, const CiKernel *kernel)
{
    Variants *v = arg;
    CiText text = ci_text_new(v->ctx);
    if (!ci_kernel_has_loops(kernel) || !ci_cuda_can_specialize(kernel))
        return;
    ci_kernels_print_alone(&text, v->kernels, kernel);
    const CiKernels *alone = ci_kernels_parse(v->ctx, text.data, v->kernels->machine);
    ci_kernels_verify(alone);
    ci_kernels_verify_text(alone);
    const char *whole = text_of_procs(v->ctx, v->procs, kernel),
               *same = text_of_procs(v->ctx, ci_gpu_lower(alone, true, true), alone->kernels[0]);
    if (strcmp(whole, same) != 0)
        ci_fail(v->ctx, CI_ERR_INTERNAL, "%s\nmakes\n%s\nalone, and not\n%s", text.data, same, whole);
    Narrowed narrowed = {.text = text.data, .alone = alone};
    check_classes(v, kernel, &narrowed);
    v->count++;
}

/* ---- costs of the GPU's kernels ---- */

/* What one point of a proc does, counted in its statements: the iterations of its serial loops are
 * not, so a number says that a text has changed and not how long it runs. */
typedef struct Costs {
    int loads, stores, bytes, barriers, operations;
} Costs;

static void
count_access(Costs *costs, const CiProc *proc, const CiStmt *stmt)
{
    bool is_store = stmt->kind == CI_STMT_store;
    CiType type = is_store ? proc->types[stmt->args[0]] : stmt->type;
    if (stmt->at.memory->space != CI_SPACE_global)
        return;
    costs->loads += !is_store;
    costs->stores += is_store;
    costs->bytes += (int)ci_dtype_size(stmt->at.memory->dtype) * type.lanes;
}

static void
count_block(Costs *costs, const CiProc *proc, const CiStmts *block)
{
    for (const CiStmt *stmt = block->first; stmt; stmt = stmt->next) {
        bool is_access = stmt->kind == CI_STMT_store || (stmt->kind == CI_STMT_let && stmt->at.memory);
        if (is_access)
            count_access(costs, proc, stmt);
        else if (stmt->kind == CI_STMT_let && ci_op_kind(stmt->op) == CI_OPKIND_pointwise)
            costs->operations++;
        if (stmt->kind == CI_STMT_copy) {
            costs->loads++;
            costs->bytes += (int)(ci_dtype_size(stmt->in[0].memory->dtype) * stmt->expr->value);
        }
        costs->barriers += stmt->kind == CI_STMT_barrier || stmt->kind == CI_STMT_synchronize;
        count_block(costs, proc, &stmt->body);
        count_block(costs, proc, &stmt->other);
    }
}

static void
run_costs(CiContext *ctx, void *arg)
{
    Run *run = arg;
    run->device = "cuda";
    run->backend = "interp";
    run->device_memory = run->splits = run->templates = true;
    run->graph = ci_graph_parse(ctx, run->text);
    run_passes(ctx, run);
    make_loops(ctx, run);
    rewrite_loops(ctx, run);
    make_kernels(ctx, run);
    const CiProcs *procs = ci_gpu_lower(run->kernels, true, true);
    for (int k = 0; k < procs->nprocs; k++) {
        Costs costs = {0};
        count_block(&costs, procs->procs[k], &procs->procs[k]->body);
        printf("%s loads %d stores %d bytes %d operations %d barriers %d\n", procs->procs[k]->name,
               costs.loads, costs.stores, costs.bytes, costs.operations, costs.barriers);
    }
}

/* The number of kernels that have variants. */
static void
run_variants(CiContext *ctx, void *arg)
{
    Run *run = arg;
    run->device = "cuda";
    run->backend = "interp";
    run->device_memory = true;
    if (is_of_level(run->text, "procs") || is_of_level(run->text, "kernels"))
        return;
    if (is_of_level(run->text, "loops")) {
        run->loops = ci_loops_parse(ctx, run->text);
    } else {
        run->graph = ci_graph_parse(ctx, run->text);
        run_passes(ctx, run);
    }
    make_loops(ctx, run);
    rewrite_loops(ctx, run);
    make_kernels(ctx, run);
    Variants v = {ctx, run->kernels, ci_gpu_lower(run->kernels, true, true), 0};
    ci_kernels_visit(run->kernels, check_variants, &v);
    if (v.count)
        printf("variants: %d\n", v.count);
}

/* ---- the file ---- */

static void
read_file(CiContext *ctx, Run *run, const char *file)
{
    const char *end = strncmp(file, "---", 3) == 0 ? file : strstr(file, "\n---");
    run->text = ci_copy_text(ctx, file, end ? (size_t)(end - file) + 1 : strlen(file));
    const char *head = run->text;
    const char *lines = is_of_level(run->text, "kernels") ? strstr(run->text, "\nlines ") : NULL;
    run->lines = lines ? lines + 1 : NULL;
    if (lines)
        run->text = ci_copy_text(ctx, head, (size_t)(lines + 1 - head));
    run->passes = find_header(ctx, head, "passes", "");
    run->loop_passes = find_header(ctx, head, "loop_passes", "");
    run->proc_passes = find_header(ctx, head, "proc_passes", "");
    run->dump = find_header(ctx, head, "dump",
                            is_of_level(head, "kernels") ? "source"
                            : is_of_level(head, "loops") ? "loops"
                                                         : "graph");
    run->device = find_header(ctx, head, "device", "cpu");
    run->backend = find_header(ctx, head, "backend", "c");
    run->choices = find_header(ctx, head, "choices", "");
    run->trees = strcmp(find_header(ctx, head, "trees", "0"), "0") != 0;
    run->short_rows = strcmp(find_header(ctx, head, "short_rows", "0"), "0") != 0;
    run->tiles = strcmp(find_header(ctx, head, "tiles", "0"), "0") != 0;
    run->templates = strcmp(find_header(ctx, head, "templates", "0"), "0") != 0;
    run->batches = strcmp(find_header(ctx, head, "batches", "0"), "0") != 0;
    run->device_memory = strcmp(find_header(ctx, head, "device_memory", "0"), "0") != 0;
    run->records = strcmp(find_header(ctx, head, "records", "0"), "0") != 0;
    run->unasked = strcmp(find_header(ctx, head, "unasked", "0"), "0") != 0;
    run->online = atoll(find_header(ctx, head, "online", "0"));
    run->scans = atoll(find_header(ctx, head, "scans", "0"));
    run->pools = strcmp(find_header(ctx, head, "pools", "0"), "0") != 0;
    run->splits = strcmp(find_header(ctx, head, "splits", "0"), "0") != 0;
    run->fusion = strcmp(find_header(ctx, head, "fusion", "1"), "0") != 0;
}

static bool
show_file(const char *path, void (*levels)(CiContext *ctx, void *run))
{
    void *data;
    size_t size;
    if (ci_os_read(path, &data, &size) != 0)
        return false;
    CiContext *ctx = ci_context_open();
    Run run = {0};
    read_file(ctx, &run, ci_copy_text(ctx, data, size));
    if (ci_protect(ctx, levels, &run) != CI_OK)
        printf("--- expected error\n%s\n", ci_context_message(ctx));
    ci_context_close(ctx);
    free(data);
    return true;
}

/* Of several files each one's text stands behind a line with its name, and is out before the next. */
int
main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    bool is_of_variants = !strcmp(argv[1], "variants"), is_of_costs = !strcmp(argv[1], "costs");
    for (int k = 1 + (is_of_variants || is_of_costs); k < argc; k++) {
        if (argc > 2)
            printf("=== %s\n", argv[k]);
        if (!show_file(argv[k], is_of_variants ? run_variants : is_of_costs ? run_costs : run_levels)) {
            fprintf(stderr, "usage: golden FILE...\n");
            return 2;
        }
        fflush(stdout);
    }
    return 0;
}
