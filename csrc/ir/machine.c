/* The rows of machine.def: one struct for each machine. */
#include "ir/machine.h"

CiMachine
ci_machine(CiMachineId id)
{
    CiMachine machine = {0};
#define PARAMETER(type, name, generic, v2, v3, v4, armv8, interp, sm_90, doc)                      \
    machine.name = (const type[CI_MACHINE_COUNT]){generic, v2, v3, v4, armv8, interp, sm_90}[id];
#include "ir/machine.def"
    return machine;
}
