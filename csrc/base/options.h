/* The options of a compilation: one field for each row of options.def. */
#ifndef CI_BASE_OPTIONS_H
#define CI_BASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct CiOptions {
#define CI_OPTION_bool bool
#define CI_OPTION_int int64_t
#define CI_OPTION_text const char *
#define CI_OPTION_levels const char *
#define CI_OPTION_passes const char *
#define CI_OPTION_choices const char *
#define CI_OPTION_joins const char *
#define OPTION(name, type, value, allowed, env, doc) CI_OPTION_##type name;
#include "base/options.def"
#undef OPTION
} CiOptions;

/* The table's defaults. The binding applies the environment. */
void ci_options_default(CiOptions *options);
/* numerics is numpy or exact: floats are reduced in NumPy's order, unless the machine has its own. */
bool ci_options_have_numpys_order(const CiOptions *options);

#endif
