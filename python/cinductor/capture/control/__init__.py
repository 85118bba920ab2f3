"""Loops and branches on traced values: each becomes one node of the graph, or gives the reason why not."""
