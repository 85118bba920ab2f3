"""The operations of `__ci__`: each does what Python does and, during capture, also records it in the stage."""
