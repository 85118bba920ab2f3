"""A function's source, and the source that capture runs in its place. Only syntax is looked at."""
