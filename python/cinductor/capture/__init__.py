"""Capture: the rewriter makes Python visible, the stage decides what each step means.

From the bottom up: `objects`, `kinds`, `iterators` and `syntax` know nothing of a call; `control` makes
loops and branches of the graph; `boundary` and `stage` are one captured call; `calls` decides what
calling something means; `hooks` is what rewritten code asks; `pieces` splits a function that breaks;
`entry` and `session` are a call from its arguments to its result.
"""
