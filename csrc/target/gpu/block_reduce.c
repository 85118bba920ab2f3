/* Block all-reduce: combines the partial results of the threads, so that every thread has the total.
 *
 * Threads of a warp exchange values by shuffles. The first lane of each warp stores its value in shared memory,
 * and every thread combines these values in order. If combining is expensive or there are many warps, each warp
 * reduces them by shuffles once more instead. Without warps the threads combine halves of the block in shared
 * memory. */
#include "target/gpu/print.h"

#define MAX_PARTS 4

typedef struct Parts {
    const CiMemory *memories[MAX_PARTS];
    int count;
} Parts;

static void
find_parts(void *arg, const CiStmt *stmt)
{
    Parts *parts = arg;
    const CiMemory *memory = stmt->at.memory;
    if (stmt->kind == CI_STMT_store && memory->space == CI_SPACE_thread &&
        parts->count < MAX_PARTS)
        parts->memories[parts->count++] = memory;
}

static void
print_others(CiCPrinter *c, const Parts *parts, const char *from)
{
    for (int k = 0; k < parts->count; k++) {
        const char *name = parts->memories[k]->name;
        ci_text_line(c->out, "const %s other_%s = %s;", ci_emit_type(parts->memories[k]->dtype),
                     name, ci_format(c->ctx, from, name));
    }
}

static void
print_warp(CiGpuPrinter *p, const CiStmt *reduction, const Parts *parts, int lanes)
{
    CiCPrinter *c = &p->c;
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int h = %d; h; h /= 2) {", lanes / 2);
    ci_emit_use(c->base, "ci_shuffle");
    print_others(c, parts, "ci_shuffle(%s, h)");
    ci_c_print_block(c, &reduction->body);
    ci_text_close(c->out);
}

static void
print_in_order(CiGpuPrinter *p, const CiStmt *reduction, const Parts *parts, int warps)
{
    CiCPrinter *c = &p->c;
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = met_%s[0];", parts->memories[k]->name, parts->memories[k]->name);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int w = 1; w < %d; w++) {", warps);
    print_others(c, parts, "met_%s[w]");
    ci_c_print_block(c, &reduction->body);
    ci_text_close(c->out);
}

/* Lane 0 has them in order, and tells the others. */
static void
print_exchanged(CiGpuPrinter *p, const CiStmt *reduction, const Parts *parts, int warps)
{
    CiCPrinter *c = &p->c;
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = met_%s[%s %% %d];", parts->memories[k]->name,
                     parts->memories[k]->name, p->gpu->thread, warps);
    print_warp(p, reduction, parts, warps);
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = %s(%s, %d);", parts->memories[k]->name, ci_emit_use(c->base, "ci_first"),
                     parts->memories[k]->name, CI_WARP);
}

/* Declares shared memory for a value of each part. It may contain values of an earlier round that
 * other threads still read, and then a barrier comes first. */
static void
declare_met(CiGpuPrinter *p, const Parts *parts, int count)
{
    bool is_new = true;
    for (int k = 0; k < parts->count; k++)
        is_new &= ci_gpu_declare_shared(p, parts->memories[k]->dtype,
                                        ci_format(p->c.ctx, "met_%s", parts->memories[k]->name),
                                        count);
    if (p->reduces_again || !is_new)
        ci_text_line(p->c.out, "%s", p->gpu->barrier);
}

static void
print_warps(CiGpuPrinter *p, const CiStmt *reduction, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    int warps = p->threads / p->gpu->warp;
    declare_met(p, parts, warps);
    ci_text_open(c->out, "if (%s %% %d == 0) {", p->gpu->thread, p->gpu->warp);
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "met_%s[%s/%d] = %s;", parts->memories[k]->name, p->gpu->thread,
                     p->gpu->warp, parts->memories[k]->name);
    ci_text_close(c->out);
    ci_text_line(c->out, "%s", p->gpu->barrier);
    if (ci_stmt_reduces_by_halves(reduction))
        print_exchanged(p, reduction, parts, warps);
    else
        print_in_order(p, reduction, parts, warps);
}

static void
store_met(CiGpuPrinter *p, const Parts *parts)
{
    for (int k = 0; k < parts->count; k++)
        ci_text_line(p->c.out, "met_%s[%s] = %s;", parts->memories[k]->name, p->gpu->thread,
                     parts->memories[k]->name);
}

/* The lower half of the threads takes the values of the upper half, again and again, until as many
 * values are left as the reduction has results. */
static void
print_halves(CiGpuPrinter *p, const CiStmt *reduction, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    int results = reduction->number > 1 ? reduction->number : 1;
    declare_met(p, parts, p->threads);
    store_met(p, parts);
    ci_text_line(c->out, "%s", p->gpu->barrier);
    ci_text_open(c->out, "for (int h = %d; h >= %d; h /= 2) {", p->threads / 2, results);
    ci_text_open(c->out, "if (%s < h) {", p->gpu->thread);
    print_others(c, parts, ci_format(c->ctx, "met_%%s[%s + h]", p->gpu->thread));
    ci_c_print_block(c, &reduction->body);
    store_met(p, parts);
    ci_text_close(c->out);
    ci_text_line(c->out, "%s", p->gpu->barrier);
    ci_text_close(c->out);
}

static void
print_total(CiGpuPrinter *p, const Parts *parts, const char *from)
{
    for (int k = 0; k < parts->count; k++)
        ci_text_line(p->c.out, "%s = %s;", parts->memories[k]->name,
                     ci_format(p->c.ctx, from, parts->memories[k]->name));
}

void
ci_gpu_print_block_reduce(CiGpuPrinter *p, const CiStmt *reduction)
{
    int warp = p->gpu->warp, lanes = p->threads < warp ? p->threads : warp;
    Parts parts = {{NULL}, 0};
    if (p->threads == 1)
        return;
    ci_stmts_visit(&reduction->body, find_parts, &parts);
    p->other = reduction->vars[1];
    ci_text_open(p->c.out, "{");
    if (reduction->number > 1 || warp == 1) {
        print_halves(p, reduction, &parts);
        if (reduction->number <= 1)
            print_total(p, &parts, "met_%s[0]");
    } else {
        print_warp(p, reduction, &parts, lanes);
        if (p->threads > warp)
            print_warps(p, reduction, &parts);
        else
            print_total(p, &parts, ci_format(p->c.ctx, "%s(%%s, %d)", ci_emit_use(p->c.base, "ci_first"), lanes));
    }
    ci_text_close(p->c.out);
    p->other = NULL;
}

void
ci_gpu_print_registers(CiGpuPrinter *p, const CiStmt *registers)
{
    Parts parts = {{NULL}, 0};
    ci_stmts_visit(&registers->body, find_parts, &parts);
    p->other = registers->vars[1];
    print_warp(p, registers, &parts, registers->number);
    p->other = NULL;
}

/* Combines each lane with the lanes 1, 2, 4, … before it. */
static void
print_prefix_of_lanes(CiCPrinter *c, const CiStmt *prefix, const Parts *parts, int lanes)
{
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int h = 1; h < %d; h *= 2) {", lanes);
    ci_emit_use(c->base, "ci_before");
    print_others(c, parts, "ci_before(%s, h)");
    ci_text_open(c->out, "if (lane >= h) {");
    ci_c_print_block(c, &prefix->body);
    ci_text_close(c->out);
    ci_text_close(c->out);
}

/* Combines each thread with the threads 1, 2, 4, … before it, through shared memory (Hillis and
 * Steele, Data Parallel Algorithms, 1986). */
static void
print_prefix_of_block(CiGpuPrinter *p, const CiStmt *prefix, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    declare_met(p, parts, p->threads);
    ci_text_open(c->out, "for (int h = 1; h < %d; h *= 2) {", p->threads);
    store_met(p, parts);
    ci_text_line(c->out, "%s", p->gpu->barrier);
    print_others(c, parts,
                 ci_format(c->ctx, "met_%%s[%s >= h ? %s - h : 0]", p->gpu->thread, p->gpu->thread));
    ci_text_line(c->out, "%s", p->gpu->barrier);
    ci_text_open(c->out, "if (%s >= h) {", p->gpu->thread);
    ci_c_print_block(c, &prefix->body);
    ci_text_close(c->out);
    ci_text_close(c->out);
}

/* The last lanes of the warps store their prefixes in shared memory. Every warp scans them, and
 * starts with the total of the warps before it. */
static void
print_prefix_of_warps(CiGpuPrinter *p, const CiStmt *prefix, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    int warps = p->threads / p->gpu->warp;
    const char *name = parts->memories[0]->name, *type = ci_emit_type(parts->memories[0]->dtype);
    declare_met(p, parts, warps);
    ci_text_line(c->out, "const int warp = (int)%s / %d;", p->gpu->thread, p->gpu->warp);
    ci_text_line(c->out, "if (lane == %d)", p->gpu->warp - 1);
    ci_text_line(c->out, "    met_%s[warp] = %s;", name, name);
    ci_text_line(c->out, "%s", p->gpu->barrier);
    ci_text_line(c->out, "const %s own_%s = %s;", type, name, name);
    ci_text_line(c->out, "%s = met_%s[lane < %d ? lane : 0];", name, name, warps);
    print_prefix_of_lanes(c, prefix, parts, warps);
    print_others(c, parts, "ci_before(%s, lane - warp + 1)");
    ci_text_line(c->out, "%s = own_%s;", name, name);
    ci_text_open(c->out, "if (warp > 0) {");
    ci_c_print_block(c, &prefix->body);
    ci_text_close(c->out);
}

void
ci_gpu_print_prefix(CiGpuPrinter *p, const CiStmt *prefix)
{
    CiCPrinter *c = &p->c;
    int warp = p->gpu->warp, lanes = p->threads < warp ? p->threads : warp;
    Parts parts = {{NULL}, 0};
    ci_stmts_visit(&prefix->body, find_parts, &parts);
    p->other = prefix->vars[0];
    ci_text_open(c->out, "{");
    if (warp == 1) {
        print_prefix_of_block(p, prefix, &parts);
    } else {
        ci_text_line(c->out, "const int lane = (int)%s %% %d;", p->gpu->thread, lanes);
        print_prefix_of_lanes(c, prefix, &parts, lanes);
        if (p->threads > warp)
            print_prefix_of_warps(p, prefix, &parts);
    }
    ci_text_close(c->out);
    p->other = NULL;
}
