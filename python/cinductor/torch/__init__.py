"""torch.compile(model, backend="cinductor"): PyTorch graphs compiled by cinductor.

`import cinductor` never imports this package. torch finds it by the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["backend", "export", "package"]


def backend(
    gm: Any, inputs: Any, *, mode: str | None = None, options: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Compile a graph that torch.compile has captured.

    Parameters
    ----------
    gm : torch.fx.GraphModule
        The captured graph.
    inputs : sequence of torch.Tensor and int
        Fake or real tensors, one for each placeholder.
    mode : str, optional
        A mode of `cinductor.compile`.
    options : dict, optional
        Options of `cinductor.compile`, and two more. `strict`: raise if cinductor fails, where eager would run the graph with
        one warning. `fused_random`: compute random numbers (dropout, rand, randn, randint, bernoulli, normal) in the kernels that
        use them, by Philox with a seed from torch's generator for each op. They are reproducible after
        `torch.manual_seed`, and other numbers than eager's.

    Returns
    -------
    callable
        Takes the graph's inputs and returns its outputs.

    Raises
    ------
    ValueError
        If an option or its value is unknown.
    """
    from .entry import compile_graph_module

    return compile_graph_module(gm, inputs, mode, options or {})


def export(program: Any, form: str = "c", options: dict[str, Any] | None = None) -> Any:
    """Return an exported program of torch for use without torch and Python.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        A result of `torch.export.export`. Its parameters and buffers are inputs of the C function; `package` stores them.
    form : str
        As in `cinductor.export`: "c" for one C file, "json", or a name of `register_wrapper_backend`.
    options : dict, optional
        Options of `cinductor.compile`.

    Returns
    -------
    str or object
        The file, or the result of the wrapper backend. Its inputs are those of the exported graph: parameters, buffers, then
        arguments.

    Raises
    ------
    Unsupported
        If an op needs ATen: the op, the reason and the line of the model.
    """
    from .exported import export

    return export(program, form, options)


def package(path: Any, programs: Any, options: dict[str, Any] | None = None) -> list[str]:
    """Write exported programs of torch to one file, which `cinductor.load` runs without torch.

    Parameters
    ----------
    path : str or path
        The file.
    programs : torch.export.ExportedProgram or dict
        A result of `torch.export.export`, whose entry is called "forward"; for several entries a dict of name -> program.
    options : dict, optional
        Options of `cinductor.compile`, for all entries.

    Returns
    -------
    list of str
        The names of the entries. Each takes and returns arrays of NumPy in the structure of the model's arguments and results.
        Parameters and buffers are constants of the file. Results have memory of their own.

    Raises
    ------
    Unsupported
        If an op needs ATen, or the program writes to a buffer: the op, the reason and the line of the model.

    Examples
    --------
    >>> batch = torch.export.Dim("batch")
    >>> program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    >>> cinductor.torch.package("model.cpk", program)
    ['forward']
    >>> cinductor.load("model.cpk")["forward"](x.numpy())
    """
    from .exported import package

    return package(path, programs, options)
