/* What the files that split procs share. */
#ifndef CI_CODEGEN_SPLIT_H
#define CI_CODEGEN_SPLIT_H

#include "codegen/at.h"
#include "codegen/codegen.h"

/* split_proc.c. A proc of the same kernel, its body still empty, values numbered as in the first.
 */
CiProc *ci_split_new_finish(CiProcs *procs, const CiProc *proc);
/* Parameter number `number` of what units leave: an element for each place. */
CiMemory *ci_split_add_partial(CiBuild *b, CiDtype dtype, const CiExpr *places, int number);
/* split_running.c: a loop that scans or packs. */
void ci_split_running(CiProcs *procs, CiProc *proc, const CiFamily *family);

#endif
