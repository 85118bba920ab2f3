/* np.einsum of two operands as matrix products.
 *
 * Letters of both operands and the result are batches; letters of one operand and the result are
 * rows or columns; the letter that the result lacks is summed. Neighbouring letters that are one
 * axis in memory are merged. The first letter of each kind is an axis of the product; the others
 * are loops, with one product per position. */
#include "device/cuda/library.h"
#include "device/cuda/matmul.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_LETTERS = 16 };

/* An axis by its letter: elements between neighbours in the operands and the result, 0 where it is
 * none of theirs. */
typedef struct Letter {
    char name;
    bool is_in[3];
    int64_t size, strides[3];
} Letter;

typedef struct Contraction {
    Letter letters[MAX_LETTERS];
    int count;
    const char *texts[3]; /* of the operands and the result */
    int lengths[3];
    char result[MAX_LETTERS]; /* its letters in the order of its axes in memory */
} Contraction;

static Letter *
find_letter(Contraction *c, char name)
{
    for (int k = 0; k < c->count; k++)
        if (c->letters[k].name == name)
            return &c->letters[k];
    if (c->count == MAX_LETTERS)
        return NULL;
    c->letters[c->count] = (Letter){.name = name};
    return &c->letters[c->count++];
}

static bool
read_letters(Contraction *c, int k)
{
    for (int axis = 0; axis < c->lengths[k]; axis++) {
        char name = c->texts[k][axis];
        bool is_letter = (name >= 'a' && name <= 'z') || (name >= 'A' && name <= 'Z');
        Letter *letter = is_letter ? find_letter(c, name) : NULL;
        if (!letter || letter->is_in[k]) /* a diagonal */
            return false;
        letter->is_in[k] = true;
    }
    return true;
}

/* `… [1, 0]`: letters of the result from the outermost axis in memory to the innermost. */
static bool
order_result(Contraction *c, const char *numbers)
{
    if (!numbers || c->lengths[2] > MAX_LETTERS)
        return false;
    for (int axis = 0; axis < c->lengths[2]; axis++) {
        char *end;
        long letter = strtol(numbers + 1, &end, 10);
        if (end == numbers + 1 || letter < 0 || letter >= c->lengths[2])
            return false;
        c->result[axis] = c->texts[2][letter];
        numbers = end; /* a comma, or the end */
    }
    c->texts[2] = c->result;
    return true;
}

/* `ij,jk->ik False [0, 1]`: what is multiplied, how NumPy would, and the order of axes. False where
 * it is no such product. */
static bool
read(Contraction *c, const char *key)
{
    const char *comma = strchr(key, ','), *arrow = strstr(key, "->"), *end = strchr(key, ' ');
    int nfolded = 0;
    if (!comma || !arrow || !end || comma > arrow || arrow > end || strchr(comma + 1, ',') < arrow)
        return false;
    *c = (Contraction){.texts = {key, comma + 1, arrow + 2},
                       .lengths = {(int)(comma - key), (int)(arrow - comma - 1),
                                   (int)(end - arrow - 2)}};
    for (int k = 0; k < 3; k++)
        if ((k == 2 && !order_result(c, strchr(end, '['))) || !read_letters(c, k))
            return false;
    for (int k = 0; k < c->count; k++) {
        const Letter *letter = &c->letters[k];
        bool is_folded = !letter->is_in[2];
        if (is_folded && !(letter->is_in[0] && letter->is_in[1]))
            return false;
        nfolded += is_folded;
    }
    return nfolded <= 1;
}

bool
ci_cuda_takes_contraction(const CiExternItem *item)
{
    Contraction c;
    bool takes = item->noperands == 2 && item->result->dtype != CI_DTYPE_bool &&
                 item->ext->key && read(&c, item->ext->key);
    for (int k = 0; k < 2 && takes; k++)
        takes = item->operands[k]->dtype == item->result->dtype &&
                item->operands[k]->kind != CI_BUFFER_scalar && item->ranks[k] == c.lengths[k];
    return takes;
}

/* ---- sizes ---- */

/* An axis of one element stands for any. */
static void
take_sizes(Contraction *c, const CiExternCall *call)
{
    for (int k = 0; k < 3; k++)
        for (int axis = 0; axis < c->lengths[k]; axis++) {
            Letter *letter = find_letter(c, c->texts[k][axis]);
            int64_t size = call->sizes[k][axis];
            letter->strides[k] = size == 1 ? 0 : call->strides[k][axis];
            letter->size = size == 1 && letter->size ? letter->size : size;
        }
}

static bool
are_alike(const Letter *a, const Letter *b)
{
    return a->is_in[0] == b->is_in[0] && a->is_in[1] == b->is_in[1] && a->is_in[2] == b->is_in[2];
}

/* The two are one axis in memory, the second inside the first. */
static bool
join(Letter *outer, const Letter *inner)
{
    for (int k = 0; k < 3; k++)
        if (outer->is_in[k] && outer->strides[k] != inner->strides[k] * inner->size)
            return false;
    for (int k = 0; k < 3; k++)
        outer->strides[k] = inner->strides[k];
    outer->size *= inner->size;
    return true;
}

static void
join_letters(Contraction *c)
{
    for (int a = 0; a < c->count; a++)
        for (int b = 0; b < c->count; b++) {
            if (a == b || !are_alike(&c->letters[a], &c->letters[b]) ||
                !join(&c->letters[a], &c->letters[b]))
                continue;
            c->letters[b] = c->letters[--c->count];
            a = a == c->count ? b : a;
            b = -1;
        }
}

/* ---- products ---- */

typedef struct Run {
    const CiQueue *queue;
    CiCudaContextScope scope;
    Contraction *c;
    CiCudaProduct product;
    const Letter *walked[MAX_LETTERS];
    int nwalked;
    int result;
} Run;

/* Of letters of a kind the longest goes along. */
static const Letter *
take_longest(Run *r, bool in_a, bool in_b, bool in_result)
{
    const Letter *longest = NULL;
    for (int k = 0; k < r->c->count; k++) {
        const Letter *letter = &r->c->letters[k];
        if (letter->is_in[0] != in_a || letter->is_in[1] != in_b || letter->is_in[2] != in_result)
            continue;
        if (longest && longest->size >= letter->size) {
            r->walked[r->nwalked++] = letter;
            continue;
        }
        if (longest)
            r->walked[r->nwalked++] = longest;
        longest = letter;
    }
    return longest;
}

static void
set_product(Run *r, const CiExternCall *call)
{
    static const Letter one = {.size = 1};
    const Letter *found[] = {take_longest(r, true, true, true), take_longest(r, true, false, true),
                             take_longest(r, false, true, true),
                             take_longest(r, true, true, false)};
    for (int k = 0; k < 4; k++)
        found[k] = found[k] ? found[k] : &one;
    const Letter *batch = found[0], *m = found[1], *n = found[2], *inner = found[3];
    r->product = (CiCudaProduct){
        .dtype = call->dtypes[2],
        .m = m->size,
        .n = n->size,
        .k = inner->size,
        .batch = batch->size,
        .a = {(CUdeviceptr)(uintptr_t)call->operands[0], m->strides[0], inner->strides[0],
              batch->strides[0]},
        .b = {(CUdeviceptr)(uintptr_t)call->operands[1], inner->strides[1], n->strides[1],
              batch->strides[1]},
        .c = {(CUdeviceptr)(uintptr_t)call->result, m->strides[2], n->strides[2],
              batch->strides[2]}};
}

static int32_t
walk(Run *r)
{
    int64_t count = 1, size = ci_dtype_size(r->product.dtype);
    int32_t status = CI_OK;
    for (int k = 0; k < r->nwalked; k++)
        count *= r->walked[k]->size;
    for (int64_t number = 0; number < count && !status && !r->result; number++) {
        CiCudaProduct own = r->product;
        CiCudaMatrix *const all[3] = {&own.a, &own.b, &own.c};
        int64_t rest = number;
        for (int k = 0; k < r->nwalked; k++) {
            int64_t at = rest % r->walked[k]->size;
            rest /= r->walked[k]->size;
            for (int i = 0; i < 3; i++)
                all[i]->data += (CUdeviceptr)(at * size * r->walked[k]->strides[i]);
        }
        status = ci_cuda_product(r->queue, r->scope.state, &own, &r->result);
    }
    return status;
}

int32_t
ci_cuda_run_contraction(const CiQueue *queue, const CiExternCall *call)
{
    Contraction c;
    Run r = {.queue = queue, .c = &c};
    if (!read(&c, call->ext->key))
        return CI_ERR_UNSUPPORTED;
    for (int axis = 0; axis < call->ranks[2]; axis++)
        if (call->sizes[2][axis] == 0)
            return CI_OK;
    take_sizes(&c, call);
    join_letters(&c);
    set_product(&r, call);
    int32_t status = ci_cuda_enter(&r.scope, queue);
    if (status)
        return status;
    status = walk(&r);
    int32_t left = ci_cuda_leave(&r.scope, r.result);
    return status ? status : left;
}
