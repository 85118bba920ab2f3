/* The rows of options.def: defaults, and what several levels ask of them. */
#include "base/options.h"

#include <string.h>

void
ci_options_default(CiOptions *options)
{
#define OPTION(name, type, value, allowed, env, doc) options->name = value;
#include "base/options.def"
#undef OPTION
}

bool
ci_options_have_numpys_order(const CiOptions *options)
{
    const char *numerics = options->numerics;
    return !numerics || !strcmp(numerics, "numpy") || !strcmp(numerics, "exact");
}
