"""NumPy's functions on traced arrays, expressed by operations of the tracer."""
