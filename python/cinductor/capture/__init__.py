"""Capture: the rewriter makes each step of a function a call, and the tracer decides what the step means.

From the bottom up:

* `objects`, `kinds`, `iterators`, `reversal` and `syntax` know nothing of a call.
* `control` makes loops and branches of the graph.
* `boundary` and `stage` hold the state of one captured call.
* `calls` implements calls of functions. `hooks` has the methods that rewritten code calls.
* `pieces` splits a function at its breaks.
* `entry` and `session` take a call from its arguments to its result.
"""
