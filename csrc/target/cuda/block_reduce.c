/* Block all-reduce: combines the partial results of the threads, so that every thread has the
 * total. Threads of a warp exchange values by shuffles. The first lane of each warp stores its
 * value in shared memory, and every thread combines these values in order. If combining is
 * expensive, each warp reduces them by shuffles once more instead. */
#include "target/cuda/print.h"

#define MOST_PARTS 4

typedef struct Parts {
    const CiMemory *memories[MOST_PARTS];
    int count;
} Parts;

static void
find_parts(void *arg, const CiStmt *stmt)
{
    Parts *parts = arg;
    const CiMemory *memory = stmt->at.memory;
    if (stmt->kind == CI_STMT_store && memory->space == CI_SPACE_thread &&
        parts->count < MOST_PARTS)
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
print_warp(CiCudaPrinter *p, const CiStmt *meet, const Parts *parts, int lanes)
{
    CiCPrinter *c = &p->c;
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int h = %d; h; h /= 2) {", lanes / 2);
    print_others(c, parts, "ci_shuffle(%s, h)");
    ci_c_print_block(c, &meet->body);
    ci_text_close(c->out);
}

static void
print_in_order(CiCudaPrinter *p, const CiStmt *meet, const Parts *parts, int warps)
{
    CiCPrinter *c = &p->c;
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = met_%s[0];", parts->memories[k]->name, parts->memories[k]->name);
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int w = 1; w < %d; w++) {", warps);
    print_others(c, parts, "met_%s[w]");
    ci_c_print_block(c, &meet->body);
    ci_text_close(c->out);
}

/* Lane 0 has them in order, and tells the others. */
static void
print_exchanged(CiCudaPrinter *p, const CiStmt *meet, const Parts *parts, int warps)
{
    CiCPrinter *c = &p->c;
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = met_%s[threadIdx.x %% %d];", parts->memories[k]->name,
                     parts->memories[k]->name, warps);
    print_warp(p, meet, parts, warps);
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "%s = ci_first(%s, %d);", parts->memories[k]->name,
                     parts->memories[k]->name, CI_WARP);
}

/* Shared memory may contain values of an earlier round that other threads still read, so a barrier
 * comes first. */
static void
print_warps(CiCudaPrinter *p, const CiStmt *meet, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    int warps = p->threads / CI_WARP;
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "__shared__ %s met_%s[%d];", ci_emit_type(parts->memories[k]->dtype),
                     parts->memories[k]->name, warps);
    if (p->meets_again)
        ci_text_line(c->out, "__syncthreads();");
    ci_text_open(c->out, "if (threadIdx.x %% %d == 0) {", CI_WARP);
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "met_%s[threadIdx.x/%d] = %s;", parts->memories[k]->name, CI_WARP,
                     parts->memories[k]->name);
    ci_text_close(c->out);
    ci_text_line(c->out, "__syncthreads();");
    if (ci_stmt_is_costly_reduce(meet))
        print_exchanged(p, meet, parts, warps);
    else
        print_in_order(p, meet, parts, warps);
}

/* Threads that are some apart are of different warps: the lower half takes the upper half's, again
 * and again. */
static void
print_halves(CiCudaPrinter *p, const CiStmt *meet, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    for (int k = 0; k < parts->count; k++) {
        const char *name = parts->memories[k]->name;
        ci_text_line(c->out, "__shared__ %s met_%s[%d];", ci_emit_type(parts->memories[k]->dtype),
                     name, p->threads);
        if (k == 0 && p->meets_again)
            ci_text_line(c->out, "__syncthreads();");
        ci_text_line(c->out, "met_%s[threadIdx.x] = %s;", name, name);
    }
    ci_text_line(c->out, "__syncthreads();");
    ci_text_open(c->out, "for (int h = %d; h >= %d; h /= 2) {", p->threads / 2, meet->number);
    ci_text_open(c->out, "if (threadIdx.x < h) {");
    print_others(c, parts, "met_%s[threadIdx.x + h]");
    ci_c_print_block(c, &meet->body);
    for (int k = 0; k < parts->count; k++)
        ci_text_line(c->out, "met_%s[threadIdx.x] = %s;", parts->memories[k]->name,
                     parts->memories[k]->name);
    ci_text_close(c->out);
    ci_text_line(c->out, "__syncthreads();");
    ci_text_close(c->out);
}

void
ci_cuda_print_block_reduce(CiCudaPrinter *p, const CiStmt *meet)
{
    CiCPrinter *c = &p->c;
    int lanes = p->threads < CI_WARP ? p->threads : CI_WARP;
    Parts parts = {{NULL}, 0};
    if (p->threads == 1)
        return;
    ci_stmts_visit(&meet->body, find_parts, &parts);
    p->other = meet->vars[1];
    ci_text_open(c->out, "{");
    if (meet->number > 1) {
        print_halves(p, meet, &parts);
        ci_text_close(c->out);
        p->other = NULL;
        return;
    }
    print_warp(p, meet, &parts, lanes);
    if (p->threads > CI_WARP)
        print_warps(p, meet, &parts);
    for (int k = 0; k < parts.count && p->threads <= CI_WARP; k++)
        ci_text_line(c->out, "%s = ci_first(%s, %d);", parts.memories[k]->name,
                     parts.memories[k]->name, lanes);
    ci_text_close(c->out);
    p->other = NULL;
}

/* Combines each lane with the lanes 1, 2, 4, … before it. */
static void
print_prefix_of_lanes(CiCPrinter *c, const CiStmt *prefix, const Parts *parts, int lanes)
{
    ci_text_line(c->out, "#pragma unroll");
    ci_text_open(c->out, "for (int h = 1; h < %d; h *= 2) {", lanes);
    print_others(c, parts, "ci_before(%s, h)");
    ci_text_open(c->out, "if (lane >= h) {");
    ci_c_print_block(c, &prefix->body);
    ci_text_close(c->out);
    ci_text_close(c->out);
}

/* The last lanes of the warps store their prefixes in shared memory. Every warp scans them, and
 * starts with the total of the warps before it. */
static void
print_prefix_of_warps(CiCudaPrinter *p, const CiStmt *prefix, const Parts *parts)
{
    CiCPrinter *c = &p->c;
    int warps = p->threads / CI_WARP;
    const char *name = parts->memories[0]->name, *type = ci_emit_type(parts->memories[0]->dtype);
    ci_text_line(c->out, "__shared__ %s met_%s[%d];", type, name, warps);
    if (p->meets_again)
        ci_text_line(c->out, "__syncthreads();");
    ci_text_line(c->out, "const int warp = (int)threadIdx.x / %d;", CI_WARP);
    ci_text_line(c->out, "if (lane == %d)", CI_WARP - 1);
    ci_text_line(c->out, "    met_%s[warp] = %s;", name, name);
    ci_text_line(c->out, "__syncthreads();");
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
ci_cuda_print_prefix(CiCudaPrinter *p, const CiStmt *prefix)
{
    CiCPrinter *c = &p->c;
    int lanes = p->threads < CI_WARP ? p->threads : CI_WARP;
    Parts parts = {{NULL}, 0};
    ci_stmts_visit(&prefix->body, find_parts, &parts);
    p->other = prefix->vars[0];
    ci_text_open(c->out, "{");
    ci_text_line(c->out, "const int lane = (int)threadIdx.x %% %d;", lanes);
    print_prefix_of_lanes(c, prefix, &parts, lanes);
    if (p->threads > CI_WARP)
        print_prefix_of_warps(p, prefix, &parts);
    ci_text_close(c->out);
    p->other = NULL;
}
