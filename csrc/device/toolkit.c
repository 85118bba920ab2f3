/* The table of toolkit.h. */
#include "device/toolkit.h"

static const CiCInstructions plain_machine = {.routines = NULL};

/* Of a target without vectors. */
static void
refuse_lanes(CiCPrinter *p, const CiStmt *stmt)
{
    (void)stmt;
    ci_fail(p->ctx, CI_ERR_UNSUPPORTED, "proc %s: the target has no vectors", p->proc->name);
}

static const char *
buffer_memory(CiCPrinter *p, int number)
{
    return ci_format(p->ctx, "buffers[%d]", number);
}

static CiCPrinter *
new_printer(const CiKernels *kernels, const CiSpelling *spelling, const CiCDialect *dialect)
{
    CiContext *ctx = kernels->loops->ctx;
    CiCPrinter *p = ci_c_printer_new(ctx, &plain_machine, 16);
    CiCDialect *whole = CI_NEW(ctx, CiCDialect);
    *whole = *dialect;
    whole->let = dialect->let ? dialect->let : refuse_lanes;
    whole->store = dialect->store ? dialect->store : refuse_lanes;
    whole->math = dialect->math ? dialect->math : ci_c_math;
    whole->alloc = dialect->alloc ? dialect->alloc : ci_c_print_alloc;
    whole->global = dialect->global ? dialect->global : "";
    whole->own_memory = dialect->own_memory ? dialect->own_memory : buffer_memory;
    p->dialect = whole;
    p->index_type = "int64_t";
    p->base = ci_emitter_new(kernels, spelling);
    p->sym = kernels->loops->sym;
    return p;
}

static CiText
print_body(CiCPrinter *p, const CiProc *proc)
{
    CiText body = ci_text_new(p->ctx);
    ci_c_begin_proc(p, proc, &body);
    ci_c_print_block(p, &proc->body);
    return body;
}

static void
print_support(CiCPrinter *p, CiText *out)
{
    ci_emit_types(out);
    ci_emit_support(p->base, out);
    ci_text_add(out, "%s", p->helpers.data);
}

static const char *
index_text(CiCPrinter *p, const CiExpr *index)
{
    return ci_emit_index_text(p->base, index);
}

static const char *
buffer_name(CiCPrinter *p, const CiBuffer *buffer)
{
    return ci_emit_buffer(p->base, buffer);
}

static const char *
scalar_text(CiCPrinter *p, const CiBuffer *buffer)
{
    CiText text = ci_text_new(p->ctx);
    ci_emit_slot(p->base, &text, buffer);
    return text.data;
}

static CiSizeTable *
launch_table(CiContext *ctx, const CiProcs *procs, const CiKernel *kernel)
{
    CiLaunchExprs launch = ci_procs_launch(procs, kernel->name);
    return ci_size_table_of_launch(ctx, kernel, &launch);
}

const CiToolkit ci_toolkit = {.abi = CI_DEVICE_ABI,
                              .fail = ci_fail,
                              .format = ci_format,
                              .text_new = ci_text_new,
                              .text_add = ci_text_add,
                              .text_line = ci_text_line,
                              .machine = ci_machine,
                              .codegen = ci_codegen,
                              .launch_table = launch_table,
                              .fill_table = ci_size_table_fill,
                              .printer = new_printer,
                              .body = print_body,
                              .support = print_support,
                              .memory = ci_c_memory,
                              .element = ci_c_element,
                              .index = index_text,
                              .storage = ci_dtype_storage,
                              .buffer = buffer_name,
                              .scalar = scalar_text,
                              .conditions = ci_c_conditions,
                              .print_alloc = ci_c_print_alloc,
                              .gpu_machine = ci_gpu_fill_machine,
                              .gpu_compiler = ci_gpu_compiler,
                              .uses = ci_emit_uses};
