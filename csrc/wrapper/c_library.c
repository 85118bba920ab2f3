/* Library calls that a program in C does by itself: sorts, searches and medians (c_library.def), and
 * random draws (c_draws.c). The routines are texts over the element type T; those that the program
 * calls are printed once for each dtype.
 *
 * A row is copied to contiguous memory and sorted there by a bottom-up merge sort over runs of 16
 * from an insertion sort (Knuth, The Art of Computer Programming 3, 5.2.4). It is stable: equal
 * elements stay in order of their positions, whatever `kind` the call has. NaN is last. A partition
 * is a full sort. */
#include "wrapper/c_library.h"
#include "wrapper/c_draws.h"

#include <string.h>

static const char views_text[] =
    "\n/* ---- library calls ---- */\n\n"
    "/* An operand or the result of a routine, which gets the operands and then the result. */\n"
    "typedef struct ci_view {\n    void *data;\n    int32_t rank;\n"
    "    int64_t sizes[%d], strides[%d]; /* strides in elements */\n} ci_view;\n\n"
    "/* The number of rows along an axis; -1: of elements. */\nstatic int64_t\n"
    "ci_row_count(const ci_view *v, int32_t axis)\n{\n    int64_t count = 1;\n"
    "    for (int32_t k = 0; k < v->rank; k++)\n"
    "        count *= k == axis ? 1 : v->sizes[k];\n    return count;\n}\n\n"
    "/* The position of the first element of a row along an axis; -1: of an element. */\n"
    "static int64_t\nci_row_start(const ci_view *v, int32_t axis, int64_t row)\n{\n"
    "    int64_t at = 0;\n    for (int32_t k = v->rank - 1; k >= 0; k--)\n"
    "        if (k != axis) {\n            at += row %% v->sizes[k] * v->strides[k];\n"
    "            row /= v->sizes[k];\n        }\n    return at;\n}\n";

/* Over ITEM and BEFORE(a, b): values, or positions in keys. */
static const char sort_text[] =
    "\n"
    "/* Sorts n items of a; b is as much memory. Returns the one with the sorted items. */\n"
    "static inline ITEM *\nNAMED(%s)(ITEM *a, ITEM *b, int64_t n, const T *keys)\n{\n"
    "    (void)keys;\n    for (int64_t k = 0; k < n; k++) {\n"
    "        const ITEM item = a[k];\n        int64_t to = k;\n"
    "        for (; (to & 15) && BEFORE(item, a[to - 1]); to--)\n"
    "            a[to] = a[to - 1];\n        a[to] = item;\n    }\n"
    "    for (int64_t width = 16; width < n; width *= 2) {\n"
    "        for (int64_t first = 0; first < n; first += 2 * width) {\n"
    "            const int64_t middle = first + width < n ? first + width : n;\n"
    "            const int64_t end = middle + width < n ? middle + width : n;\n"
    "            int64_t left = first, right = middle;\n"
    "            for (int64_t k = first; k < end; k++) {\n"
    "                const int is_right = left == middle || (right < end && BEFORE(a[right], a[left]));\n"
    "                b[k] = is_right ? a[right++] : a[left++];\n            }\n        }\n"
    "        ITEM *const merged = b;\n        b = a;\n        a = merged;\n    }\n"
    "    return a;\n}\n";

/* Routines over T, MEAN (of medians), LESS(a, b), and NAMED(f), the name of f for the dtype. */
static const char sort_rows_text[] =
    "\nstatic inline int32_t\nNAMED(ci_sort)(const ci_view *v, int32_t axis)\n{\n"
    "    const int64_t n = v->sizes[axis], rows = n ? ci_row_count(v, axis) : 0;\n"
    "    T *const a = ci_take(2 * n * (int64_t)sizeof(T));\n    if (!a)\n"
    "        return CI_NO_MEMORY;\n    for (int64_t row = 0; row < rows; row++) {\n"
    "        const T *const x = (const T *)v[0].data + ci_row_start(&v[0], axis, row);\n"
    "        T *const y = (T *)v[1].data + ci_row_start(&v[1], axis, row);\n"
    "        for (int64_t k = 0; k < n; k++)\n            a[k] = x[k * v[0].strides[axis]];\n"
    "        const T *const sorted = NAMED(ci_sort_values)(a, a + n, n, 0);\n"
    "        for (int64_t k = 0; k < n; k++)\n"
    "            y[k * v[1].strides[axis]] = sorted[k];\n    }\n    free(a);\n    return 0;\n"
    "}\n";

static const char argsort_rows_text[] =
    "\nstatic inline int32_t\nNAMED(ci_argsort)(const ci_view *v, int32_t axis)\n{\n"
    "    const int64_t n = v->sizes[axis], rows = n ? ci_row_count(v, axis) : 0;\n"
    "    int64_t *const a = ci_take(2 * n * 8 + n * (int64_t)sizeof(T));\n    if (!a)\n"
    "        return CI_NO_MEMORY;\n    T *const keys = (T *)(a + 2 * n);\n"
    "    for (int64_t row = 0; row < rows; row++) {\n"
    "        const T *const x = (const T *)v[0].data + ci_row_start(&v[0], axis, row);\n"
    "        int64_t *const y = (int64_t *)v[1].data + ci_row_start(&v[1], axis, row);\n"
    "        for (int64_t k = 0; k < n; k++) {\n            a[k] = k;\n"
    "            keys[k] = x[k * v[0].strides[axis]];\n        }\n"
    "        const int64_t *const sorted = NAMED(ci_sort_positions)(a, a + n, n, keys);\n"
    "        for (int64_t k = 0; k < n; k++)\n"
    "            y[k * v[1].strides[axis]] = sorted[k];\n    }\n    free(a);\n    return 0;\n"
    "}\n";

static const char median_text[] =
    "\n/* axis -1: the median of all elements. */\nstatic inline int32_t\n"
    "NAMED(ci_median)(const ci_view *v, int32_t axis)\n{\n"
    "    const int64_t rows = axis < 0 ? 1 : ci_row_count(v, axis), n = ci_row_count(v, -1) / "
    "(rows ? rows : 1);\n"
    "    T *const a = ci_take(2 * n * (int64_t)sizeof(T));\n    if (!a)\n"
    "        return CI_NO_MEMORY;\n    for (int64_t row = 0; row < rows; row++) {\n"
    "        const T *const x = (const T *)v[0].data + (axis < 0 ? 0 : ci_row_start(&v[0], axis, "
    "row));\n"
    "        for (int64_t k = 0; k < n; k++)\n"
    "            a[k] = x[axis < 0 ? ci_row_start(&v[0], -1, k) : k * v[0].strides[axis]];\n"
    "        const T *const sorted = NAMED(ci_sort_values)(a, a + n, n, 0);\n"
    "        const MEAN low = (MEAN)sorted[(n - 1) / 2], high = (MEAN)sorted[n / 2], last = "
    "(MEAN)sorted[n - 1];\n"
    "        const MEAN middle = 0 + (n % 2 ? high : (low + high) / 2); /* a mean is no -0.0 */\n"
    "        ((MEAN *)v[1].data)[ci_row_start(&v[1], -1, row)] = last == last ? middle : last;\n"
    "    }\n    free(a);\n    return 0;\n}\n";

static const char search_text[] =
    "\nstatic inline int32_t\nNAMED(ci_search)(const ci_view *v, int32_t is_right)\n{\n"
    "    const T *const a = v[0].data;\n"
    "    for (int64_t k = ci_row_count(&v[1], -1); k-- > 0;) {\n"
    "        const T wanted = ((const T *)v[1].data)[ci_row_start(&v[1], -1, k)];\n"
    "        int64_t low = 0, high = v[0].sizes[0];\n        while (low < high) {\n"
    "            const int64_t middle = low + (high - low) / 2;\n"
    "            const T item = a[middle * v[0].strides[0]];\n"
    "            if (is_right ? !LESS(wanted, item) : LESS(item, wanted))\n"
    "                low = middle + 1;\n            else\n                high = middle;\n"
    "        }\n        ((int64_t *)v[2].data)[ci_row_start(&v[2], -1, k)] = low;\n    }\n"
    "    return 0;\n}\n";

/* ---- the last argument of a routine ---- */

enum { ALL_AXES = -1, REFUSED = -2 };

static int
axis_at(const CiExternItem *call, const char *text)
{
    int axis = ci_extern_axis(text, call->ranks[0]);
    return axis < 0 ? REFUSED : axis;
}

static int
axis_of(const CiExternItem *call)
{
    const char *text = strstr(call->ext->key, "axis=");
    return text ? axis_at(call, text + 5) : REFUSED;
}

/* The key of a median: `0 False`, or `None True`. */
static int
median_axis(const CiExternItem *call)
{
    return strncmp(call->ext->key, "None ", 5) ? axis_at(call, call->ext->key) : ALL_AXES;
}

static int
is_right(const CiExternItem *call)
{
    bool is_left = !strcmp(call->ext->key, "left");
    return is_left || !strcmp(call->ext->key, "right") ? !is_left : REFUSED;
}

/* ---- rows ---- */

typedef struct Row {
    const char *name;
    int operands;
    const char *routine;
    int (*how)(const CiExternItem *call);
} Row;

static const Row rows[] = {
#define LIBRARY(name, operands, routine, how) {#name, operands, #routine, how},
#include "wrapper/c_library.def"
};

static const Row *
row_of(const CiExternItem *call)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k].name, call->ext->name))
            return rows[k].operands == call->noperands && rows[k].how(call) != REFUSED ? &rows[k]
                                                                                         : NULL;
    return NULL;
}

/* True if the dtype is one of C's own types. */
static bool
has_order(CiDtype dtype)
{
    return ci_dtype_is_integral(dtype) || dtype == CI_DTYPE_f32 || dtype == CI_DTYPE_f64;
}

/* The dtype of the median of elements of a dtype, and of the computation. */
static CiDtype
mean_dtype(CiDtype dtype)
{
    return dtype == CI_DTYPE_f32 ? dtype : CI_DTYPE_f64;
}

const char *
ci_c_library_refuses(CiContext *ctx, const CiExternItem *call)
{
    const Row *row = row_of(call);
    if (ci_is_draw(call))
        return ci_c_draw_refuses(ctx, call);
    if (!row)
        return ci_format(ctx, "C cannot call %s, a function of NumPy's", call->ext->name);
    for (int k = 0; k < call->noperands; k++) {
        CiDtype dtype = call->operands[k]->dtype;
        bool is_stored = call->operands[k]->kind != CI_BUFFER_scalar || ci_dtype_size(dtype) == 8;
        if (!has_order(dtype) || !is_stored || dtype != call->operands[0]->dtype)
            return ci_format(ctx, "C has no %s of %s", call->ext->name, ci_dtype_name(dtype));
    }
    if (row->how == median_axis && call->result->dtype != mean_dtype(call->operands[0]->dtype))
        return ci_format(ctx, "C has no median as %s", ci_dtype_name(call->result->dtype));
    return NULL;
}

const char *
ci_c_library_routine(CiContext *ctx, const CiExternItem *call, int *how)
{
    if (ci_is_draw(call)) {
        *how = 0;
        return ci_c_draw_routine(ctx, call);
    }
    const Row *row = row_of(call);
    *how = row->how(call);
    return ci_format(ctx, "%s_%s", row->routine, ci_dtype_name(call->operands[0]->dtype));
}

/* ---- printing ---- */

typedef enum Sort { SORT_none, SORT_values, SORT_positions, SORT_COUNT } Sort;

typedef struct Routine {
    const char *name, *text;
    Sort sort; /* that it calls */
} Routine;

static const Routine routines[] = {
    {"ci_sort", sort_rows_text, SORT_values},
    {"ci_argsort", argsort_rows_text, SORT_positions},
    {"ci_median", median_text, SORT_values},
    {"ci_search", search_text, SORT_none},
};
enum { ROUTINES = sizeof routines / sizeof *routines };

static void
print_sort(CiText *out, Sort sort)
{
    bool is_values = sort == SORT_values;
    ci_text_add(out, "\n#define ITEM %s\n#define BEFORE(a, b) %s", is_values ? "T" : "int64_t",
                is_values ? "LESS(a, b)" : "LESS(keys[a], keys[b])");
    ci_text_add(out, sort_text, is_values ? "ci_sort_values" : "ci_sort_positions");
    ci_text_add(out, "\n#undef ITEM\n#undef BEFORE\n");
}

static void
print_dtype(CiText *out, CiDtype dtype, const bool *is_called)
{
    bool is_float = !ci_dtype_is_integral(dtype), is_sorted[SORT_COUNT] = {true};
    ci_text_add(out, "\n#define T %s\n#define MEAN %s\n#define NAMED(f) f##_%s\n", ci_dtype_storage(dtype),
                ci_dtype_storage(mean_dtype(dtype)), ci_dtype_name(dtype));
    ci_text_add(out, "#define LESS(a, b) %s\n",
                is_float ? "((a) < (b) || ((b) != (b) && (a) == (a)))" : "((a) < (b))");
    for (int k = 0; k < ROUTINES; k++) {
        if (!is_called[k])
            continue;
        if (!is_sorted[routines[k].sort])
            print_sort(out, routines[k].sort);
        is_sorted[routines[k].sort] = true;
        ci_text_add(out, "%s", routines[k].text);
    }
    ci_text_add(out, "\n#undef T\n#undef MEAN\n#undef NAMED\n#undef LESS\n");
}

/* Marks the routines that the program calls with this dtype; true if there are any. */
static bool
find_called(const CiWrapper *wrapper, CiDtype dtype, bool *is_called)
{
    bool is_any = false;
    for (int k = 0; k < wrapper->nlines; k++) {
        const CiExternItem *call = wrapper->lines[k].ext;
        if (!call || ci_is_draw(call) || call->operands[0]->dtype != dtype)
            continue;
        for (int r = 0; r < ROUTINES; r++)
            is_called[r] |= !strcmp(routines[r].name, row_of(call)->routine);
        is_any = true;
    }
    return is_any;
}

static bool
calls_anything(const CiWrapper *wrapper)
{
    for (int k = 0; k < wrapper->nlines; k++)
        if (wrapper->lines[k].ext)
            return true;
    return false;
}

void
ci_c_library_print_routines(CiText *out, const CiWrapper *wrapper)
{
    if (!calls_anything(wrapper))
        return;
    ci_text_add(out, views_text, CI_MAX_RANK, CI_MAX_RANK);
    for (int dtype = 0; dtype < CI_DTYPE_COUNT; dtype++) {
        bool is_called[ROUTINES] = {false};
        if (find_called(wrapper, (CiDtype)dtype, is_called))
            print_dtype(out, (CiDtype)dtype, is_called);
    }
    ci_c_draws_print(out, wrapper);
}
