"""Things that a user adds to the compiler: kernels, custom operations, passes, lowerings, heuristics, explicit control flow."""
