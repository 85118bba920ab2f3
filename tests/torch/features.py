"""Makers of arguments, an op in Python, and the backend, for tests of several features."""

import functools

# isort: split
import torch

import cinductor.torch


def rand(*sizes, **more):
    return functools.partial(make_all, sizes, more)


def make_all(sizes, more):
    """Tensors of these sizes, drawn with a fixed seed."""
    return tuple(torch.randn(s, **more) for s in sizes)


@torch.library.custom_op("cinductor_tests::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


def cinductor_backend():
    return cinductor.torch.backend
