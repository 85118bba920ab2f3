"""NumPy's functions on traced arrays, in terms of the tracer's primitives."""
