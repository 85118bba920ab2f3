"""NumPy's flags of arrays, as bits of `flags.num`."""

C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
