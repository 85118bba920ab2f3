/* The rows of machine.def: one struct for each machine. */
#include "ir/machine.h"

CiMachine
ci_machine(CiMachineId id)
{
    CiMachine machine = {0};
#define PARAMETER(type, name, generic, cpu, interp, sm_90, doc) \
    machine.name = (const type[CI_MACHINE_COUNT]){generic, cpu, interp, sm_90}[id];
#include "ir/machine.def"
    return machine;
}

CiMachine
ci_machine_of_cpu(int vector_bytes, int vector_registers)
{
    CiMachine machine = ci_machine(CI_MACHINE_cpu);
    machine.vector_bytes = machine.lanes = vector_bytes;
    machine.vector_registers = vector_registers;
    return machine;
}
