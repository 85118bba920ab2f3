"""The calls of a compiled function: its state, guard misses, dynamic sizes, saved calls, and when compiling pays."""
