/* Masks (proc_masks.c): converts them to other widths, and to bytes. */
#include "target/c/c.h"

/* A bool as a mask of so many bytes a lane. */
const char *
ci_c_as_mask(CiCPrinter *p, int value, int bytes)
{
    CiType type = ci_c_type_of(p, value);
    const char *name = ci_c_name(p, value);
    if (type.mask == 0)
        name = ci_format(p->ctx, "(%s != 0)", name);
    if (bytes == (type.mask ? type.mask : 1))
        return name;
    return ci_c_convert(p, ci_c_mask_dtype(type.mask ? type.mask : 1), ci_c_mask_dtype(bytes), type.lanes, name);
}

const char *
ci_c_bytes_of_mask(CiCPrinter *p, int bytes, int lanes, const char *mask)
{
    return ci_format(p->ctx, "(%s & 1)", ci_c_convert(p, ci_c_mask_dtype(bytes), CI_DTYPE_u8, lanes, mask));
}

/* As bytes that are 0 or 1. */
const char *
ci_c_as_bytes(CiCPrinter *p, int value)
{
    CiType type = ci_c_type_of(p, value);
    const char *name = ci_c_name(p, value);
    return type.mask ? ci_c_bytes_of_mask(p, type.mask, type.lanes, name) : name;
}

/* The number of the first lane that is true, of all lanes if none is. */
const char *
ci_c_first_true(CiCPrinter *p, int value)
{
    CiType type = ci_c_type_of(p, value);
    int width = type.mask ? type.mask : 1;
    return ci_format(p->ctx, "%s(%s)", ci_c_find_lane(p, width, type.lanes), ci_c_as_mask(p, value, width));
}
