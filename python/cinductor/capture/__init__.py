"""Capture: the rewriter makes Python visible, the stage decides what each step means.

From the bottom up: `value` and `rewrite` know nothing of a call; `region` makes loops and branches
of the graph; `call` decides what calling something means; the modules here are one captured call.
"""
