/* Links the lines of regions: opening and closing lines, and the memory that is allocated in a loop
 * at its exit. */
#include "wrapper/place.h"

static void
drop_buffer(CiLine *test, const CiBuffer *buffer)
{
    int kept = 0;
    for (int k = 0; k < test->nfrees; k++)
        if (test->frees[k] != buffer)
            test->frees[kept++] = test->frees[k];
    test->nfrees = kept;
}

/* Finds the allocations of the loop's own block that are live at its test. */
static void
find_frees(CiWrapper *wrapper, int position)
{
    CiLine *test = &wrapper->lines[position];
    int capacity = 0, depth = 0;
    for (int i = test->open + 1; i < position; i++) {
        const CiLine *line = &wrapper->lines[i];
        const CiLineRow *row = ci_line_row(line->kind);
        depth += ci_line_opens(line) - ci_line_closes(line);
        if (depth)
            continue;
        if (row->buffer == CI_USE_last || row->other == CI_USE_last)
            drop_buffer(test, row->buffer == CI_USE_last ? line->buffer : line->other);
        if (row->buffer == CI_USE_defines && line->kind != CI_LINE_alloc_result)
            CI_PUSH(wrapper->ctx, test->frees, test->nfrees, capacity, line->buffer);
    }
}

void
ci_wrapper_match(CiWrapper *wrapper)
{
    int *open = CI_NEW_ARRAY(wrapper->ctx, int, wrapper->nlines + 1);
    int depth = 0;
    for (int i = 0; i < wrapper->nlines; i++) {
        CiLine *line = &wrapper->lines[i];
        if (ci_line_closes(line)) {
            CI_REQUIRE(wrapper->ctx, depth > 0);
            int start = open[--depth];
            wrapper->lines[start].match = i;
            line->open = start;
        }
        if (line->kind == CI_LINE_test) {
            CI_REQUIRE(wrapper->ctx, depth > 0);
            line->open = open[depth - 1];
            find_frees(wrapper, i);
        }
        if (ci_line_opens(line))
            open[depth++] = i;
    }
    CI_REQUIRE(wrapper->ctx, depth == 0);
}
