"""Expressions over axes that leave points out. They compare and compute; they call nothing."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Any

import simpleeval

from cgratio.results.schema import AXES
from cgratio.sweep.document import SpecError

_NO_EXPRESSION = (
    simpleeval.InvalidExpression,
    Warning,
    SyntaxError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    RecursionError,
    MemoryError,
)


class Exclusion:
    """One expression, read once and held against many points."""

    def __init__(self, expression: str) -> None:
        """Reads the expression.

        Raises:
            SpecError: it is none.
        """
        self._expression = expression
        self._point: dict[str, Any] = {}
        self._evaluator = simpleeval.SimpleEval(names=self._value, functions={})
        for node in (ast.Call, ast.Attribute):
            self._evaluator.nodes.pop(node, None)
        self._tree = self._guarded(lambda: self._evaluator.parse(expression))

    def holds(self, point: dict[str, Any]) -> bool:
        """Whether the expression is true of a point; not where it names an axis that the point lacks.

        Raises:
            SpecError: it names something that is no axis, or cannot be computed.
        """
        self._point = point
        names = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        # Looked at before it is computed, so that the order of its parts does not matter.
        if any(point.get(name, name) is None for name in names):
            return False
        return bool(self._guarded(lambda: self._evaluator.eval(self._expression, self._tree)))

    def _value(self, node: Any) -> Any:
        if node.id not in self._point:
            raise SpecError(
                f"exclude: {self._expression!r} names {node.id}; axes are {', '.join(AXES)}",
                axis="exclude",
                value=self._expression,
            )
        return self._point[node.id]

    def _guarded(self, work: Callable[[], Any]) -> Any:
        try:
            with warnings.catch_warnings():
                # simpleeval only warns of an assignment or of a second expression.
                warnings.simplefilter("error")
                return work()
        except SpecError:
            raise
        except _NO_EXPRESSION as error:
            message = f"exclude: {self._expression!r} is not an expression over axes: {_why(error)}"
            raise SpecError(message, axis="exclude", value=self._expression) from error


def _why(error: Exception) -> str:
    match error:
        case SyntaxError():
            return error.msg
        case simpleeval.FeatureNotAvailable() | simpleeval.FunctionNotDefined():
            return "it may compare and compute, and nothing else"
        case simpleeval.AssignmentAttempted():
            return "= assigns; write == to compare"
        case simpleeval.MultipleExpressions():
            return "it is more than one; give each an entry of its own"
        case _:
            return " ".join(str(error).split())
