"""Calls in captured functions, dispatched on the identity of the callee."""
