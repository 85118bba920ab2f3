"""Device arrays: the class, calls of compiled functions with them, streams, memory."""
