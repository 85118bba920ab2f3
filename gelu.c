typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned uint32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef struct ci_c64 { float re, im; } ci_c64;
typedef struct ci_c128 { double re, im; } ci_c128;
typedef struct CiRun {
    void *scratch, *partials, *fault;
    int32_t (*poll)(void *arg);
    void *poll_arg;
    void (*apply)(const void *, int32_t, int64_t, void *, const void *, int64_t, const void *, int64_t);
    const void *ufuncs;
    int64_t *turn;
    int32_t (*wait)(void *arg, int64_t unit);
    void *wait_arg;
    int32_t is_again;
} CiRun;
#define CI_INLINE static inline __attribute__((always_inline))
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x8_u __attribute__((vector_size(32), aligned(4), may_alias));
CI_INLINE f32x8
splat_f32x8(float a)
{
    return (f32x8){a, a, a, a, a, a, a, a};
}
typedef int32_t i32x8 __attribute__((vector_size(32)));
typedef int32_t i32x8_u __attribute__((vector_size(32), aligned(4), may_alias));
CI_INLINE f32x8
fma_f32x8(f32x8 a, f32x8 b, f32x8 c)
{
    return __builtin_ia32_vfmaddps256(a, b, c);
}
f32x8 _ZGVdN8v_expf(f32x8);
CI_INLINE f32x8
where_f32x8(i32x8 m, f32x8 a, f32x8 b)
{
    return (f32x8)(((i32x8)a & m) | ((i32x8)b & ~m));
}

int32_t
k0(void *const *buffers, const int64_t *sizes, const void *scalars, int64_t begin, int64_t end, CiRun *run)
{
    const float *restrict const in0 = buffers[0];
    float *restrict const buf0 = buffers[1];
    (void)sizes;
    (void)scalars;
    (void)run;
    for (int64_t u_0 = begin; u_0 < end; u_0++) {
        for (int64_t q_2 = 0; q_2 < 128; q_2++) {
            const float v86 = 0x1p-1f;
            const f32x8 v87 = *(const f32x8_u *)(in0 + 8*q_2 + 1024*u_0);
            const f32x8 v88 = splat_f32x8(v86);
            const f32x8 v89 = (v88 * v87);
            const float v90 = 0x1p+0f;
            const float v91 = 0x1.6a09e6p-1f;
            const f32x8 v92 = splat_f32x8(v91);
            const f32x8 v93 = (v87 * v92);
            const f32x8 v94 = ((f32x8)((i32x8)v93 & 0x7fffffff));
            const float v95 = 0x1.dbp-1f;
            const f32x8 v96 = splat_f32x8(v95);
            const i32x8 v97 = (v94 > v96);
            const float v98 = (-0x1.22p-16f);
            const float v99 = 0x1.91cfb2p-12f;
            const f32x8 v100 = splat_f32x8(v98);
            const f32x8 v101 = splat_f32x8(v99);
            const f32x8 v102 = fma_f32x8(v94, v100, v101);
            const f32x8 v103 = (v93 * v93);
            const float v104 = (-0x1.fd1438p-9f);
            const float v105 = 0x1.8d6342p-6f;
            const f32x8 v106 = splat_f32x8(v104);
            const f32x8 v107 = splat_f32x8(v105);
            const f32x8 v108 = fma_f32x8(v94, v106, v107);
            const f32x8 v109 = fma_f32x8(v102, v103, v108);
            const float v110 = (-0x1.b55cb8p-4f);
            const f32x8 v111 = splat_f32x8(v110);
            const f32x8 v112 = fma_f32x8(v109, v94, v111);
            const float v113 = (-0x1.450aap-1f);
            const f32x8 v114 = splat_f32x8(v113);
            const f32x8 v115 = fma_f32x8(v112, v94, v114);
            const float v116 = (-0x1.079d0cp-3f);
            const f32x8 v117 = splat_f32x8(v116);
            const f32x8 v118 = fma_f32x8(v115, v94, v117);
            const f32x8 v119 = (-v94);
            const f32x8 v120 = fma_f32x8(v118, v94, v119);
            const f32x8 v121 = _ZGVdN8v_expf(v120);
            const f32x8 v122 = splat_f32x8(v90);
            const f32x8 v123 = (v122 - v121);
            const f32x8 v124 = ((f32x8)(((i32x8)v123 & 0x7fffffff) | ((i32x8)v93 & ~0x7fffffff)));
            const float v125 = (-0x1.38ep-11f);
            const float v126 = 0x1.471a58p-8f;
            const f32x8 v127 = splat_f32x8(v125);
            const f32x8 v128 = splat_f32x8(v126);
            const f32x8 v129 = fma_f32x8(v103, v127, v128);
            const float v130 = (-0x1.b691b2p-6f);
            const f32x8 v131 = splat_f32x8(v130);
            const f32x8 v132 = fma_f32x8(v129, v103, v131);
            const float v133 = 0x1.ce1c44p-4f;
            const f32x8 v134 = splat_f32x8(v133);
            const f32x8 v135 = fma_f32x8(v132, v103, v134);
            const float v136 = (-0x1.8127p-2f);
            const f32x8 v137 = splat_f32x8(v136);
            const f32x8 v138 = fma_f32x8(v135, v103, v137);
            const float v139 = 0x1.06eba8p-3f;
            const f32x8 v140 = splat_f32x8(v139);
            const f32x8 v141 = fma_f32x8(v138, v103, v140);
            const f32x8 v142 = fma_f32x8(v141, v93, v93);
            const f32x8 v143 = where_f32x8(v97, v124, v142);
            const f32x8 v145 = (v122 + v143);
            const f32x8 v146 = (v89 * v145);
            *(f32x8_u *)(buf0 + 8*q_2 + 1024*u_0) = v146;
        }
    }
    return 0;
}
