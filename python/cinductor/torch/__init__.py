"""torch.compile(model, backend="cinductor"): PyTorch graphs compiled by cinductor.

`import cinductor` never imports this package. torch finds it by the entry point group `torch_dynamo_backends`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["backend"]


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
        Options of `cinductor.compile`, and `strict`: raise if cinductor fails, where eager would run the graph with
        one warning.

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
