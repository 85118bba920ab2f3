"""The table of suites: the modules whose functions are compiled, and the tests that are then run."""

from __future__ import annotations

from typing import NamedTuple


class Suite(NamedTuple):
    """One row: packages whose functions are compiled, what pytest is given, and options."""

    compiled: tuple[str, ...]
    tests: tuple[str, ...]
    methods: bool = False  # methods of classes are compiled, too
    calls: bool = False  # functions that call them are compiled instead of the functions
    leaves: str = ""  # an expression for -k that deselects tests without meaning here


SUITES = {
    "numpy.lib": Suite(
        ("numpy.lib",),
        ("numpy.lib.tests",),
        leaves="not test_io and not test_loadtxt and not test_format",
    ),
    "calls of numpy.lib": Suite(
        ("numpy.lib",),
        ("numpy.lib.tests",),
        calls=True,
        # digitize and kaiser: the captured code calls NumPy's function by name, which is now the compiled one
        leaves="not test_io and not test_loadtxt and not test_format and not aiser and not test_reverse",
    ),
    "numpy.polynomial": Suite(("numpy.polynomial",), ("numpy.polynomial.tests",), True),
    "emcee": Suite(("emcee",), ("emcee.tests",), True),
    "numpy_financial": Suite(("numpy_financial",), ("numpy_financial.tests",)),
    "networkx": Suite(
        (
            "networkx.linalg",
            "networkx.convert_matrix",
            "networkx.algorithms.link_analysis",
            "networkx.algorithms.centrality",
            "networkx.algorithms.assortativity",
            "networkx.drawing",
        ),
        (
            "networkx.linalg.tests",
            "networkx.tests.test_convert_numpy",
            "networkx.algorithms.link_analysis.tests",
            "networkx.algorithms.assortativity.tests",
            "networkx.algorithms.centrality.tests",
            "networkx.drawing.tests.test_layout",
        ),
    ),
    "colour": Suite(
        (
            "colour.models",
            "colour.algebra",
            "colour.utilities",
            "colour.temperature",
            "colour.difference",
            "colour.appearance",
        ),
        (
            "colour.models.tests",
            "colour.algebra.tests",
            "colour.utilities.tests",
            "colour.temperature.tests",
            "colour.difference.tests",
            "colour.appearance.tests",
        ),
    ),
    "scipy.signal": Suite(
        ("scipy.signal",),
        (
            "scipy.signal.tests.test_waveforms",
            "scipy.signal.tests.test_windows",
            "scipy.signal.tests.test_czt",
            "scipy.signal.tests.test_savitzky_golay",
            "scipy.signal.tests.test_filter_design",
        ),
    ),
    "scipy": Suite(
        ("scipy.signal", "scipy.stats"),
        (
            "scipy.signal.tests.test_waveforms",
            "scipy.signal.tests.test_windows",
            "scipy.signal.tests.test_czt",
            "scipy.signal.tests.test_savitzky_golay",
            "scipy.signal.tests.test_filter_design",
            "scipy.stats.tests.test_morestats",
            "scipy.stats.tests.test_correlation",
            "scipy.stats.tests.test_entropy",
        ),
    ),
    "statsmodels": Suite(
        ("statsmodels.stats", "statsmodels.tools", "statsmodels.tsa.stattools"),
        (
            "statsmodels.stats.tests.test_weightstats",
            "statsmodels.stats.tests.test_oneway",
            "statsmodels.stats.tests.test_corrpsd",
            "statsmodels.stats.tests.test_proportion",
            "statsmodels.stats.tests.test_multi",
            "statsmodels.stats.tests.test_nonparametric",
            "statsmodels.stats.tests.test_power",
            "statsmodels.stats.tests.test_correlation",
            "statsmodels.tools.tests.test_tools",
        ),
    ),
}
