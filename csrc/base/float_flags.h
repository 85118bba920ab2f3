/* The float flags of this thread, as a mask of fenv.h's FE_DIVBYZERO, FE_OVERFLOW, FE_UNDERFLOW and
 * FE_INVALID. Inline, because they are read and cleared around every launch. */
#ifndef CI_FLOAT_FLAGS_H
#define CI_FLOAT_FLAGS_H

#include <fenv.h>

#define CI_FLOAT_FLAGS (FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID)

#if defined(__x86_64__) && defined(__GNUC__)

/* The bits of MXCSR are those of fenv.h. Writing the register costs more than all else in a small
 * call, and is seldom needed. */
static inline unsigned
ci_float_flags_read(void)
{
    return __builtin_ia32_stmxcsr() & CI_FLOAT_FLAGS;
}

static inline void
ci_float_flags_clear(void)
{
    unsigned control = __builtin_ia32_stmxcsr();
    if (control & CI_FLOAT_FLAGS)
        __builtin_ia32_ldmxcsr(control & ~(unsigned)CI_FLOAT_FLAGS);
}

/* These and no others are set after it. */
static inline void
ci_float_flags_restore(unsigned flags)
{
    unsigned control = __builtin_ia32_stmxcsr();
    if ((control & CI_FLOAT_FLAGS) != flags)
        __builtin_ia32_ldmxcsr((control & ~(unsigned)CI_FLOAT_FLAGS) | flags);
}

static inline void
ci_float_flags_raise(unsigned flags)
{
    unsigned control = __builtin_ia32_stmxcsr();
    if (flags & ~control)
        __builtin_ia32_ldmxcsr(control | flags);
}

/* Moves the flags of the older registers to MXCSR: feraiseexcept(FE_OVERFLOW), which NumPy's loops
 * call, sets them there. */
static inline void
ci_float_flags_gather(void)
{
    unsigned short status;
    __asm__ volatile("fnstsw %0" : "=a"(status));
    if (status & CI_FLOAT_FLAGS) {
        __asm__ volatile("fnclex");
        ci_float_flags_raise(status & CI_FLOAT_FLAGS);
    }
}

#else

static inline void
ci_float_flags_gather(void)
{
}

static inline unsigned
ci_float_flags_read(void)
{
    return (unsigned)fetestexcept(CI_FLOAT_FLAGS);
}

static inline void
ci_float_flags_clear(void)
{
    feclearexcept(CI_FLOAT_FLAGS);
}

static inline void
ci_float_flags_restore(unsigned flags)
{
    feclearexcept(CI_FLOAT_FLAGS);
    feraiseexcept((int)flags);
}

static inline void
ci_float_flags_raise(unsigned flags)
{
    if (flags & ~ci_float_flags_read())
        feraiseexcept((int)flags);
}

#endif
#endif
