"""Checks the package with a type checker: every public name is typed, and no other name is public."""

import inspect
import sys
import typing

import numpy as np
import pytest

import cinductor
from cinductor import compile as compiling


def module_of(name):
    return sys.modules[f"cinductor.{name}"]


def test_literals_are_their_tables():
    module, config = module_of("stance"), module_of("config")
    assert typing.get_args(config.Mode) == tuple(config.MODES)
    assert typing.get_args(module.Stance) == tuple(module.STANCES)


@pytest.mark.skipif(not hasattr(typing, "get_overloads"), reason="overloads are kept since 3.11")
def test_a_misspelt_keyword_is_seen_by_a_checker_and_refused_with_a_hint():
    module = module_of("compile")
    made = typing.get_overloads(compiling)
    assert len(made) == 2
    for one in made:
        parameters = inspect.signature(one).parameters
        assert tuple(parameters) == ("fn", *module.SETTINGS)
        assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    with pytest.raises(TypeError, match="did you mean 'fullgraph'"):
        compiling(fullgrph=True)


def test_stats_and_info_have_the_keys_of_their_types():
    from cinductor import stats_types

    f = cinductor.compile(lambda x: x + 1, backend="interp")
    f(np.ones(3))
    found = cinductor.stats()
    assert set(found) == set(typing.get_type_hints(stats_types.Stats))
    for row in found["functions"].values():
        assert set(row) == set(typing.get_type_hints(stats_types.FunctionStats))
    assert set(cinductor.cache.info()) == set(typing.get_type_hints(stats_types.CacheInfo))
    assert stats_types.COUNTERS == tuple(typing.get_type_hints(stats_types.Counters))
