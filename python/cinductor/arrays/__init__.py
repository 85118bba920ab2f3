"""Arrays of devices: what they are, how compiled functions are called with them, streams, memory."""
