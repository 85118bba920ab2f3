"""Builds outside of a call: in the background, ahead of it, autotuned, exported; the size and copies of the disk cache."""
