/* Bounds of sizes. Python ints have no bound, sizes have 64 bits: an arithmetic result stays an
 * expression while it is known to fit, if necessary by guards on the magnitude of the sizes. */
#include "value/index.h"

/* The largest number of elements of an array. */
#define MAX_ELEMENTS 0x1p47
#define FITS 0x1p62

int
cx_size_fits(CxTracer *t, const CiExpr *e)
{
    double most = MAX_ELEMENTS;

    while (ci_expr_magnitude(e, most) >= FITS && most > 64.0)
        most /= 2.0;
    if (most == MAX_ELEMENTS)
        return 1;
    if (ci_expr_magnitude(e, most) >= FITS)
        return 0;
    const CiExpr *limit = cx_size_const(t, (int64_t)most),
                 *least = cx_size_const(t, -(int64_t)most);
    if (limit == NULL || least == NULL)
        return -1;
    for (int k = 0; k < e->nsymbols; k++) {
        static const char *const why = "a size whose arithmetic stays in 64 bits";
        int fits = cx_size_require(t, CI_REL_le, e->symbols[k], limit, why);
        if (fits > 0)
            fits = cx_size_require(t, CI_REL_le, least, e->symbols[k], why);
        if (fits <= 0)
            return fits;
    }
    return 1;
}
