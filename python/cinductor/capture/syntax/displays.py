"""Rewrites displays and defaults: values that Python keeps on its stack until it makes an object of all of them.

    (x * 2, f(x))    becomes    __ci__.made((x * 2, __ci__.call(f, x)))

If Python begins to run the rest of the captured call in f, the product on the stack stays a traced value, and so does the item of
the tuple. `made` was looked up before: it makes the tuple real.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .names import FunctionNode
from .stage_calls import Expressions


class Displays(Expressions):
    """Rewrites displays, and functions without statements."""

    def _row(self, nodes: list[Any], visit: Callable[[Any], Any]) -> tuple[list[Any], int]:
        """The rewritten expressions, which are evaluated one after another, and `steps` when the first one begins to wait for the
        others on Python's stack; `steps` now if none waits. Of the items that a star unpacks the first waits for the second.
        """
        found: list[Any] = []
        steps = None
        for node in nodes:
            before = self.steps
            found.append(node and visit(node))
            if steps is None and node is not None and not isinstance(node, ast.Constant):
                steps = before if isinstance(node, ast.Starred) else self.steps
        return found, self.steps if steps is None else steps

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> ast.expr:
        node.elts, steps = self._row(node.elts, self.visit)
        return self.ask(node, "made", node) if steps != self.steps and isinstance(node.ctx, ast.Load) else node

    visit_List = visit_Tuple

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        steps = None
        for i, key in enumerate(node.keys):
            if key is not None:
                node.keys[i] = self._key_of(key)
                steps = self.steps if steps is None and not isinstance(key, ast.Constant) else steps
            value = self.visit(node.values[i])
            node.values[i] = value if key is not None else self.ask(value, "mapping", value)
            self.steps += key is None
            steps = self.steps if steps is None else steps
        return self.ask(node, "made", node) if steps is not None and steps != self.steps else node

    def visit_Set(self, node: ast.Set) -> ast.expr:
        node.elts, steps = self._row(node.elts, lambda e: self.visit(e) if isinstance(e, ast.Starred) else self._key_of(e))
        return self.ask(node, "made", node) if steps != self.steps else node

    def _defaults(self, node: FunctionNode) -> bool:
        """Rewrite the defaults; return True if one waits for others."""
        args, count = node.args, len(node.args.defaults)
        found, steps = self._row([*args.defaults, *args.kw_defaults], self.visit)
        args.defaults, args.kw_defaults = found[:count], found[count:]
        return steps != self.steps

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        waits = self._defaults(node)
        self._body(node)
        return self.ask(node, "made", node) if waits else node
