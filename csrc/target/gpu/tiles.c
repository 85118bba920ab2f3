/* Copies to tiles in shared memory and products of tiles: calls of functions, and the functions in CUDA.
 *
 * The swizzle of a tile is the one of 128 bytes that wgmma reads: eight chunks of a line, and the same chunk of
 * eight lines, are in different banks. In sm_90a four warps multiply by wgmma, from shared memory; in sm_80
 * each warp by mma.sync, from fragments that ldmatrix loads. A sum has the same thread in both. */
#include "target/gpu/print.h"

#include <string.h>

bool
ci_gpu_is_of_tiles(const CiStmt *stmt)
{
    return stmt->kind == CI_STMT_copy || stmt->kind == CI_STMT_commit || stmt->kind == CI_STMT_synchronize ||
           stmt->kind == CI_STMT_multiply;
}

static const char *
place(CiCPrinter *c, const CiAccess *at)
{
    if (at->memory->space == CI_SPACE_thread) /* its first element: index 0 is the first thread's */
        return ci_format(c->ctx, "&%s", c->dialect->thread_element(c, at->memory, at->index));
    return ci_format(c->ctx, "&%s", ci_c_element(c, at->memory, at->index));
}

static void
print_copy(CiCPrinter *c, const CiStmt *copy)
{
    const CiAccess *from = &copy->in[0];
    int size = (int)ci_dtype_size(copy->at.memory->dtype);
    const char *live = ci_emit_index_text(c->base, copy->live ? copy->live : copy->expr);
    ci_text_line(c->out, "ci_copy(%s, %s, %d*(%s));", place(c, &copy->at),
                 copy->live ? ci_c_memory(c, from->memory) : place(c, from), size, live);
}

static const char *
multiply_name(CiContext *ctx, CiDtype dtype, int columns, bool is_own)
{
    return ci_format(ctx, "ci_multiply_%s%s_%d", is_own ? "own_" : "", ci_dtype_name(dtype), columns);
}

static void
print_multiply(CiCPrinter *c, const CiStmt *multiply)
{
    const CiAccess *left = &multiply->in[0], *right = &multiply->in[1];
    bool is_own = left->memory->space == CI_SPACE_thread;
    const char *first = is_own ? ci_emit_index_text(c->base, multiply->expr) : ci_format(c->ctx, "%d", multiply->number & 1);
    ci_text_line(c->out, "%s<%s, %d, %d>(%s, %s, %s);",
                 ci_emit_use(c->base, multiply_name(c->ctx, right->memory->dtype, (int)multiply->limit->value, is_own)), first,
                 multiply->number >> 1 & 1, multiply->number >> 2, multiply->at.memory->name, place(c, left), place(c, right));
}

void
ci_gpu_print_tiles(CiGpuPrinter *p, const CiStmt *stmt)
{
    CiCPrinter *c = &p->c;
    if (stmt->kind == CI_STMT_copy)
        print_copy(c, stmt);
    else if (stmt->kind == CI_STMT_commit)
        ci_text_line(c->out, "ci_commit();");
    else if (stmt->kind == CI_STMT_synchronize)
        ci_text_line(c->out, "%s<%d>();", ci_emit_use(c->base, "ci_synchronize"), stmt->number);
    else
        print_multiply(c, stmt);
}

/* ---- functions ---- */

static const char copies[] =
    "#if defined(__CUDA_ARCH_FEAT_SM90_ALL)\n"
    "#define CI_WGMMA 1\n"
    "#endif\n"
    "static __device__ unsigned ci_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }\n"
    "static __device__ void ci_copy(void *to, const void *from, int bytes) { asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" :: \"r\"(ci_shared(to)), \"l\"(from), \"r\"(bytes) : \"memory\"); }\n"
    "static __device__ void ci_commit() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n"
    "template <int N> static __device__ void ci_arrive() { asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(N) : \"memory\"); }\n"
    "#ifdef CI_WGMMA\n"
    "template <int N> static __device__ void ci_multiplied() { asm volatile(\"wgmma.wait_group.sync.aligned %0;\" :: \"n\"(N) : \"memory\"); }\n"
    "static __device__ void ci_begin() { asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\"); }\n"
    "static __device__ void ci_end() { asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: \"memory\"); }\n"
    "static __device__ void ci_show() { asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\"); }\n"
    "static __device__ uint64_t ci_tile(unsigned at) { return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(8192 >> 4) << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62; }\n"
    "#else\n"
    "template <int N> static __device__ void ci_multiplied() {}\n"
    "static __device__ void ci_show() {}\n"
    "#endif\n"
    "template <int N> static __device__ void ci_synchronize() { ci_arrive<N>(); ci_show(); if (N == 0) ci_multiplied<0>(); __syncthreads(); }\n";

/* One instruction: the left factor is a tile's, or in registers. D: its sums are added to. */
static void
add_wgmma_instruction(CiText *out, const char *type, int columns, bool is_own)
{
    int at = columns / 2;
    ci_text_add(out,
                "template <%sint R, int D> static __device__ void ci_wgmma_%s%s_%d(float *d, %s a, uint64_t b) { "
                "asm volatile(\"wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s {",
                is_own ? "" : "int L, ", is_own ? "own_" : "", type, columns, is_own ? "const unsigned *" : "uint64_t", columns,
                type, type);
    for (int k = 0; k < at; k++)
        ci_text_add(out, "%s%%%d", k ? ", " : "", k);
    if (is_own)
        ci_text_add(out, "}, {%%%d, %%%d, %%%d, %%%d}, %%%d, %%%d, 1, 1, %%%d;\" : ", at, at + 1, at + 2, at + 3, at + 4,
                    at + 5, at + 6);
    else
        ci_text_add(out, "}, %%%d, %%%d, %%%d, 1, 1, %%%d, %%%d;\" : ", at, at + 1, at + 2, at + 3, at + 4);
    for (int k = 0; k < at; k++)
        ci_text_add(out, "%s\"+f\"(d[%d])", k ? ", " : "", k);
    ci_text_add(out, is_own ? " : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"l\"(b), \"n\"(D), \"n\"(R)); }\n"
                            : " : \"l\"(a), \"l\"(b), \"n\"(D), \"n\"(L), \"n\"(R)); }\n");
}

/* The steps of a product by wgmma, for a factor in registers or one in a tile. Each group of four warps has 64 rows. A
 * descriptor of a tile has the bytes from one atom along rows to the next, and from eight lines to the next. M: 1, it waits for
 * the end; 2, sums are set; 4, they are rounded. Registers of a left factor may be used again only when the product has ended.
 * So all S steps of such a factor are one group. */
static void
add_wgmma(CiText *out, const char *type, int columns, bool is_own)
{
    const char *own = is_own ? "own_" : "", *left = is_own ? "" : "L, ";
    const char *right = is_own ? ci_format(out->ctx, "b + s/4*%d + s%%4*(R ? 2048 : 32)", 128 * columns) : "b + s*(R ? 2048 : 32)";
    ci_text_add(out, "#ifdef CI_WGMMA\n");
    add_wgmma_instruction(out, type, columns, is_own);
    ci_text_add(out,
                "template <int %s, int R, int M> static __device__ void ci_multiply_%s%s_%d(float *sums, const %s *left, const uint16_t *right)\n"
                "{\n",
                is_own ? "S" : "L", own, type, columns, is_own ? "float" : "uint16_t");
    if (is_own)
        ci_text_add(out,
                    "    const unsigned b = ci_shared(right);\n"
                    "    unsigned a[S/4];\n"
                    "    #pragma unroll\n"
                    "    for (int k = 0; k < S/4; k++)\n"
                    "        a[k] = ci_pair_%s(left[2*k], left[2*k + 1]);\n",
                    type);
    else
        ci_text_add(out, "    const unsigned a = ci_shared(left + (int)threadIdx.x/128*4096), b = ci_shared(right);\n");
    ci_text_add(out,
                "    ci_begin();\n"
                "    ci_wgmma_%s%s_%d<%sR, (M & 2) == 0>(sums, %s, ci_tile(b));\n"
                "    #pragma unroll\n"
                "    for (int s = 1; s < %s; s++)\n"
                "        ci_wgmma_%s%s_%d<%sR, 1>(sums, %s, ci_tile(%s));\n"
                "    ci_end();\n"
                "    ci_multiplied<%s>();\n"
                "    ci_round_%s<M & 4 ? %d : 0>(sums);\n"
                "}\n"
                "#endif\n",
                own, type, columns, left, is_own ? "a" : "ci_tile(a)", is_own ? "S/16" : "4", own, type, columns, left,
                is_own ? "a + 4*s" : "ci_tile(a + s*(L ? 2048 : 32))", right, is_own ? "0" : "M % 2 ? 0 : 1", type, columns / 2);
}

/* The steps of a product by mma, for a factor in registers or one in a tile. */
static void
add_mma(CiText *out, const char *type, int columns, bool is_own)
{
    ci_text_add(out,
                "#ifndef CI_WGMMA\n"
                "template <int %s, int R, int M> static __device__ void ci_multiply_%s%s_%d(float *sums, const %s *left, const uint16_t *right)\n"
                "{\n"
                "    const int lane = (int)threadIdx.x %% 32, row = (int)threadIdx.x/32*16, low = lane/8 %% 2*8, high = lane/16*8, at = lane %% 8;\n"
                "    #pragma unroll\n"
                "    for (int k = 0; k < %d && M & 2; k++)\n"
                "        sums[k] = 0;\n"
                "    #pragma unroll\n"
                "    for (int s = 0; s < %s; s += 16) {\n"
                "        const uint16_t *const tile = right + s/64*%d;\n"
                "        unsigned a[4], b[4];\n",
                is_own ? "S" : "L", is_own ? "own_" : "", type, columns, is_own ? "float" : "uint16_t", columns / 2,
                is_own ? "S" : "64", 64 * columns);
    if (is_own)
        ci_text_add(out,
                    "        #pragma unroll\n"
                    "        for (int k = 0; k < 4; k++)\n"
                    "            a[k] = ci_pair_%s(left[s/2 + 2*k], left[s/2 + 2*k + 1]);\n",
                    type);
    else
        ci_text_add(out, "        ci_fragments<L>(a, left + (L ? ci_chunk((row + low)/8, s + high + at) : ci_chunk((s + high)/8, row + low + at)));\n");
    ci_text_add(out,
                "        #pragma unroll\n"
                "        for (int c = 0; c < %d; c += 16) {\n"
                "            ci_fragments<R>(b, tile + (R ? ci_chunk((c + high)/8, s%%64 + low + at) : ci_chunk((s%%64 + low)/8, c + high + at)));\n"
                "            ci_mma_%s(sums + c/2, a, b);\n"
                "            ci_mma_%s(sums + c/2 + 4, a, b + 2);\n"
                "        }\n"
                "    }\n"
                "    ci_round_%s<M & 4 ? %d : 0>(sums);\n"
                "}\n"
                "#endif\n",
                columns, type, type, type, columns / 2);
}

static const char fragments[] =
    "static __device__ int ci_chunk(int chunk, int line) { return chunk/8*4096 + line*64 + ((chunk ^ line) % 8)*8; }\n"
    "template <int T> static __device__ void ci_fragments(unsigned *r, const uint16_t *p)\n"
    "{\n"
    "    if (T) {\n"
    "        asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(ci_shared(p)) : \"memory\");\n"
    "    } else {\n"
    "        asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\" : \"=r\"(r[0]), \"=r\"(r[1]), \"=r\"(r[2]), \"=r\"(r[3]) : \"r\"(ci_shared(p)) : \"memory\");\n"
    "    }\n"
    "}\n";

static void
add_type(CiText *out, CiEmitter *e, CiDtype dtype)
{
    const char *type = ci_dtype_name(dtype);
    bool uses[2][3], has_any = false;
    for (int is_own = 0; is_own < 2; is_own++)
        for (int k = 0; k < 3; k++) {
            uses[is_own][k] = ci_emit_uses(e, multiply_name(e->ctx, dtype, 64 << k, is_own));
            has_any |= uses[is_own][k];
        }
    if (!has_any)
        return;
    ci_text_add(out,
                "static __device__ unsigned ci_pair_%s(float a, float b) { unsigned r; asm(\"cvt.rn.%sx2.f32 %%0, %%1, %%2;\" : "
                "\"=r\"(r) : \"f\"(b), \"f\"(a)); return r; }\n"
                "template <int N> static __device__ void ci_round_%s(float *s)\n"
                "{\n"
                "    #pragma unroll\n"
                "    for (int k = 0; k < N; k += 2) {\n"
                "        const unsigned r = ci_pair_%s(s[k], s[k + 1]);\n"
                "        %s\n"
                "    }\n"
                "}\n",
                type, type, type, type,
                dtype == CI_DTYPE_f16 ? "asm(\"{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}\" : \"=f\"(s[k]), \"=f\"(s[k + 1]) : \"r\"(r));"
                                      : "s[k] = __int_as_float((int)(r << 16)), s[k + 1] = __int_as_float((int)(r & 0xffff0000));");
    ci_text_add(out,
                "static __device__ void ci_mma_%s(float *d, const unsigned *a, const unsigned *b) { "
                "asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 {%%0, %%1, %%2, %%3}, "
                "{%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};\" : \"+f\"(d[0]), \"+f\"(d[1]), "
                "\"+f\"(d[2]), \"+f\"(d[3]) : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), "
                "\"r\"(b[0]), \"r\"(b[1])); }\n",
                type, type, type);
    for (int is_own = 0; is_own < 2; is_own++)
        for (int k = 0; k < 3; k++)
            if (uses[is_own][k]) {
                add_wgmma(out, type, 64 << k, is_own);
                add_mma(out, type, 64 << k, is_own);
            }
}

void
ci_cuda_add_tiles(CiText *out, CiEmitter *e)
{
    if (!ci_emit_uses(e, "ci_synchronize"))
        return;
    ci_text_add(out, "%s%s", copies, fragments);
    add_type(out, e, CI_DTYPE_f16);
    add_type(out, e, CI_DTYPE_bf16);
}
