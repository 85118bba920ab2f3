/* Matrix products by torch's library, called from C: the functions below ATen's operators, on
 * the memory of the program: of the host, or of a device whose current stream of torch the run has. They take no lock and record no autograd. On an error the call is
 * made again through Python, which raises the exception. */
#include "program/direct.h"
#include "state/torch_functions.h"

#include <dlfcn.h>

enum { MOST = 4 }; /* tensors of a call, including the result */

typedef int32_t Product(CxHandle result, CxHandle a, CxHandle b);
typedef int32_t SumOfProduct(CxHandle result, CxHandle added, CxHandle a, CxHandle b, double beta, double alpha);

static int32_t
call_function(const CxDirect *direct, int count, CxHandle *tensors)
{
    Product *product;
    SumOfProduct *sum;

    if (count == 3) {
        memcpy(&product, &direct->routine, sizeof product);
        return product(tensors[2], tensors[0], tensors[1]);
    }
    memcpy(&sum, &direct->routine, sizeof sum);
    return sum(tensors[3], tensors[0], tensors[1], tensors[2], direct->factors[0], direct->factors[1]);
}

static bool
run_product(const CxDirect *direct, const CiExternCall *call)
{
    CxHandle tensors[MOST] = {NULL};
    CxTorchDevice place = cx_torch_device(direct->torch, call->queue);
    int count = call->noperands + 1, made = 0;

    if (count != direct->ntensors)
        return false;
    for (; made < count; made++) {
        CxTorchTensor *make = made < call->noperands ? cx_torch_operand : cx_torch_from_memory;
        void *memory = made < call->noperands ? call->operands[made] : call->result;
        tensors[made] =
            make(direct->torch, place, memory, call->dtypes[made], call->ranks[made], call->sizes[made], call->strides[made]);
        if (tensors[made] == NULL)
            break;
    }
    bool is_done = made == count && call_function(direct, count, tensors) == 0;
    for (int k = 0; k < made; k++)
        direct->torch->delete (tensors[k]);
    return is_done;
}

int
cx_direct_torch_init(CxDirect *direct, PyObject *torch_call)
{
    PyObject *functions;
    const char *name;

    if (!PyArg_ParseTuple(torch_call, "Osidd", &functions, &name, &direct->ntensors, &direct->factors[0],
                          &direct->factors[1]))
        return -1;
    direct->torch = cx_torch_of(functions);
    if (direct->torch == NULL)
        return -1;
    direct->routine = dlsym(direct->torch->library, name);
    if (direct->routine != NULL && (direct->ntensors == 3 || direct->ntensors == 4))
        direct->run = direct->run_anywhere = run_product;
    return 0;
}
