"""Capture: the rewriter makes Python visible, the stage decides what each step means."""
