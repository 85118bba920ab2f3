/* The run verifier: compares each step with the memory plan. Before a step, exactly the slots that
 * it uses and those live by the plan have memory. After it, new memory has the size of its buffer,
 * and stored floats are no NaN. */
#include "runtime/run_verifier.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

CiRunVerifier *
ci_run_verifier_new(CiContext *ctx, const CiOptions *options)
{
    CiMemoryTracking memory = !strcmp(options->track_memory, "assert") ? CI_MEMORY_assert
                           : !strcmp(options->track_memory, "log")  ? CI_MEMORY_log
                                                                    : CI_MEMORY_untracked;
    if (!memory && !options->nan_asserts && !options->size_asserts && !options->alignment_asserts)
        return NULL;
    CiRunVerifier *verifier = CI_NEW(ctx, CiRunVerifier);
    *verifier = (CiRunVerifier){.memory = memory,
                       .nans = options->nan_asserts,
                       .sizes = options->size_asserts,
                       .alignment = options->alignment_asserts};
    return verifier;
}

static const char *
where(const CiVerifiedRun *w, const CiStep *step)
{
    return w->program->verifier->steps[step - w->program->steps];
}

CI_PRINTF(3, 4)
static int32_t
fail(const CiVerifiedRun *w, const CiStep *step, const char *format, ...)
{
    va_list args;
    if (!w->message_size)
        return CI_ERR_ASSERT;
    int length = snprintf(w->message, w->message_size, "%s: ", where(w, step));
    va_start(args, format);
    if (length > 0 && (size_t)length < w->message_size)
        vsnprintf(w->message + length, w->message_size - (size_t)length, format, args);
    va_end(args);
    return CI_ERR_ASSERT;
}

static int64_t
bytes_of(const CiVerifiedRun *w, int slot)
{
    return w->values[w->program->verifier->slots[slot].bytes];
}

/* ---- what a step uses ---- */

typedef int32_t (*Visit)(CiVerifiedRun *w, const CiStep *step, int slot, bool is_stored);

static int32_t
visit_launch(CiVerifiedRun *w, const CiStep *step, Visit visit)
{
    const CiPlanLaunch *launch = &w->program->launches[step->number];
    int32_t status = CI_OK;
    for (int k = 0; k < launch->nbuffers && !status; k++)
        status = visit(w, step, launch->slots[k], w->program->verifier->stores[step->number][k]);
    return status;
}

static int32_t
visit_extern(CiVerifiedRun *w, const CiStep *step, Visit visit)
{
    const CiPlanExtern *call = &w->program->externs[step->number];
    int32_t status = CI_OK;
    for (int k = 0; k <= call->noperands && !status; k++)
        status = visit(w, step, call->slots[k], k == call->noperands);
    return status;
}

static bool
uses_slots(const CiStep *step)
{
    return step->kind == CI_STEP_launch || step->kind == CI_STEP_extern ||
           step->kind == CI_STEP_check || step->kind == CI_STEP_define ||
           step->kind == CI_STEP_unless || step->kind == CI_STEP_swap ||
           step->kind == CI_STEP_copy_in || step->kind == CI_STEP_copy_out ||
           step->kind == CI_STEP_copy_across || step->kind == CI_STEP_copy_out_start || step->kind == CI_STEP_mark;
}

static int32_t
visit_uses(CiVerifiedRun *w, const CiStep *step, Visit visit)
{
    if (step->kind == CI_STEP_launch)
        return visit_launch(w, step, visit);
    if (step->kind == CI_STEP_extern)
        return visit_extern(w, step, visit);
    int32_t status = uses_slots(step) ? visit(w, step, step->slot, false) : CI_OK;
    return status || step->other < 0 || step->kind == CI_STEP_define
               ? status
               : visit(w, step, step->other, false);
}

/* ---- before ---- */

static int
alignment_of(CiDtype dtype)
{
    int size = (int)ci_dtype_size(dtype);
    return ci_dtype_class(dtype) == CI_CLASS_complex ? size / 2 : size;
}

static int32_t
check_use(CiVerifiedRun *w, const CiStep *step, int slot, bool is_stored)
{
    const CiRunVerifier *verifier = w->program->verifier;
    const CiVerifiedSlot *of = &verifier->slots[slot];
    uintptr_t address = (uintptr_t)w->slots[slot];
    (void)is_stored;
    if (verifier->memory && slot >= w->program->ninputs && !address)
        return fail(w, step, "%s is used, but holds no memory", of->name);
    if (verifier->alignment && of->is_host && address % (uintptr_t)alignment_of(of->dtype))
        return fail(w, step, "the address of %s is no multiple of %d", of->name,
                    alignment_of(of->dtype));
    return CI_OK;
}

/* Checks that exactly the slots which are live by the plan have memory, with as many bytes in
 * total. */
static int32_t
check_live(const CiVerifiedRun *w, const CiStep *step)
{
    const CiProgram *program = w->program;
    int at = (int)(step - program->steps);
    int64_t planned = 0;
    for (int k = program->ninputs; k < program->nslots; k++) {
        const CiVerifiedSlot *of = &program->verifier->slots[k];
        bool is_planned = of->first <= at && at <= of->last;
        if (program->slots[k].is_event)
            continue;
        if (w->slots[k] && !is_planned)
            return fail(w, step, "%s still holds memory, but is of no use any more", of->name);
        if (!w->slots[k] && is_planned)
            return fail(w, step, "%s holds no memory, but is still to be used", of->name);
        planned += is_planned && !program->slots[k].is_part ? bytes_of(w, k) : 0;
    }
    if (planned != w->live)
        return fail(w, step, "%lld bytes are taken, %lld are planned", (long long)w->live,
                    (long long)planned);
    return CI_OK;
}

static int32_t
check_return(const CiVerifiedRun *w, const CiStep *step)
{
    const CiProgram *program = w->program;
    for (int k = program->ninputs; k < program->nslots; k++)
        if ((program->slots[k].is_own || program->slots[k].is_part) && w->slots[k])
            return fail(w, step, "%s is never freed", program->verifier->slots[k].name);
    if (program->verifier->memory == CI_MEMORY_log)
        fprintf(stderr, "track_memory: at most %lld bytes, %lld of them results\n",
                (long long)w->peak, (long long)w->live);
    return CI_OK;
}

static bool
takes_memory(const CiStep *step)
{
    return step->kind == CI_STEP_alloc || step->kind == CI_STEP_alloc_result;
}

int32_t
ci_verify_before(CiVerifiedRun *w, const CiStep *step)
{
    const CiRunVerifier *verifier = w->program->verifier;
    int32_t status = visit_uses(w, step, check_use);
    if (status || !verifier->memory)
        return status;
    if ((takes_memory(step) || step->kind == CI_STEP_reuse) && w->slots[step->slot])
        return fail(w, step, "%s takes memory, but holds some", verifier->slots[step->slot].name);
    if (step->kind == CI_STEP_free) {
        if (!w->slots[step->slot])
            return fail(w, step, "%s is freed, but has no memory",
                        verifier->slots[step->slot].name);
        w->live -= w->values[w->program->slots[step->slot].bytes];
    }
    if (step->kind == CI_STEP_return)
        return check_return(w, step);
    return uses_slots(step) ? check_live(w, step) : CI_OK;
}

/* ---- after a step ---- */

static bool
has_nan(const void *data, CiDtype dtype, int64_t bytes)
{
    if (dtype == CI_DTYPE_f64 || dtype == CI_DTYPE_c128) {
        for (int64_t k = 0; k < bytes / 8; k++)
            if (isnan(((const double *)data)[k]))
                return true;
    } else if (dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_c64) {
        for (int64_t k = 0; k < bytes / 4; k++)
            if (isnan(((const float *)data)[k]))
                return true;
    }
    return false;
}

static int32_t
check_numbers(CiVerifiedRun *w, const CiStep *step, int slot, bool is_stored)
{
    const CiVerifiedSlot *of = &w->program->verifier->slots[slot];
    bool is_looked_at = is_stored && of->is_host && slot >= w->program->ninputs;
    if (is_looked_at && has_nan(w->slots[slot], of->dtype, bytes_of(w, slot)))
        return fail(w, step, "%s has a NaN in it", of->name);
    return CI_OK;
}

int32_t
ci_verify_after(CiVerifiedRun *w, const CiStep *step)
{
    const CiRunVerifier *verifier = w->program->verifier;
    if (takes_memory(step) || step->kind == CI_STEP_reuse) {
        int64_t bytes = w->values[step->value];
        if (takes_memory(step))
            w->live += bytes;
        w->peak = w->live > w->peak ? w->live : w->peak;
        if (verifier->sizes && bytes != bytes_of(w, step->slot))
            return fail(w, step, "%s has %lld bytes, but its sizes come to %lld",
                        verifier->slots[step->slot].name, (long long)bytes,
                        (long long)bytes_of(w, step->slot));
    }
    bool is_new = takes_memory(step) || step->kind == CI_STEP_part;
    if (verifier->nans && is_new && verifier->slots[step->slot].is_host) /* what is never stored is no NaN */
        memset(w->slots[step->slot], 0, (size_t)bytes_of(w, step->slot));
    return verifier->nans ? visit_uses(w, step, check_numbers) : CI_OK;
}
