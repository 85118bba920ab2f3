/* Squares of vectors turned in registers: rounds, each of which zips the first half of the vectors
 * with the second. */
#include "codegen/instantiate.h"

#include <string.h>

void
ci_build_transpose(CiBuild *b, CiType type, int *values)
{
    int turned[CI_TRANSPOSE_LANES];
    CI_REQUIRE(b->ctx, type.lanes <= CI_TRANSPOSE_LANES);
    for (int round = 1; round < type.lanes; round *= 2) {
        for (int k = 0; k < type.lanes / 2; k++) {
            const int pair[] = {values[k], values[k + type.lanes / 2]};
            turned[2 * k] = ci_build_let(b, type, CI_OP_ziplo, 2, pair);
            turned[2 * k + 1] = ci_build_let(b, type, CI_OP_ziphi, 2, pair);
        }
        memcpy(values, turned, sizeof *values * (size_t)type.lanes);
    }
}
