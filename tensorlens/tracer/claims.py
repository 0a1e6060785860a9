"""Checks the claims of a script while it runs, in the script's own names, unseen by the tracer and by the script."""

from __future__ import annotations

import ast
import builtins
import sys
import types
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch

from tensorlens import claims
from tensorlens.model import Claim

_CALL = "__tensorlens_check_claim__"
_SHOWN = 120


class ClaimChecker:
    """The claims of one script, and what checking them found. `quiet()` switches recording off for the time of a check."""

    def __init__(self, specs: tuple[claims.Spec, ...], quiet: Callable[[], AbstractContextManager[None]]) -> None:
        self._specs = specs
        self._quiet = quiet
        self._found: dict[int, Claim] = {}

    def instrument(self, source: str | bytes, filename: str) -> types.CodeType:
        """The script's code with its claims checked on the way. SyntaxError is the script's own."""
        tree = claims.instrument(source, filename, self._specs, _CALL)
        setattr(builtins, _CALL, self._check)
        return compile(tree, filename, "exec", dont_inherit=True)

    def results(self, error: BaseException | None, line: int | None) -> tuple[Claim, ...]:
        """The claims in order. `error` and `line` are what ended the script, and where in it."""
        vars(builtins).pop(_CALL, None)
        return tuple(self._result(number, spec, error, line) for number, spec in enumerate(self._specs))

    def _result(self, number: int, spec: claims.Spec, error: BaseException | None, line: int | None) -> Claim:
        if number in self._found:
            return self._found[number]
        raises = spec.raises
        if raises is None or error is None or line is None or not self._ends_at(spec, line):
            return _claim(spec, "not reached")
        name, part = raises
        matches = name in {kind.__name__ for kind in type(error).__mro__} and part in str(error)
        values = ((type(error).__name__, _short(str(error))),)
        return _claim(spec, "holds" if matches else "refuted", values)

    def _ends_at(self, spec: claims.Spec, line: int) -> bool:
        """Whether the script ended before this claim and after the one before it."""
        before = [other.line for other in self._specs if other.line < spec.line and other.raises is None]
        return max(before, default=0) < line < spec.line or (line < spec.line and not self._later_reached(spec))

    def _later_reached(self, spec: claims.Spec) -> bool:
        return any(self._specs[number].line > spec.line for number in self._found)

    def _check(self, number: int) -> None:
        spec = self._specs[number]
        known = self._found.get(number)
        if known is not None and not known.as_expected:
            return  # in a loop the first pass that fails is the one to report
        frame = sys._getframe(1)
        names = {**frame.f_globals, **frame.f_locals}
        with self._quiet(), _unchanged(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._found[number] = _evaluate(spec, names)


class _unchanged:
    """Puts back what a check may change unseen: the grad mode and the state of the random numbers."""

    def __enter__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._random = torch.get_rng_state()

    def __exit__(self, *error: object) -> None:
        torch.set_rng_state(self._random)
        torch._C._set_grad_enabled(self._grad)


def _evaluate(spec: claims.Spec, names: dict[str, Any]) -> Claim:
    if spec.raises is not None:
        return _claim(spec, "refuted", (("the statement before", "raised nothing"),))
    values: list[tuple[str, str]] = []
    try:
        truth = bool(_value(ast.parse(spec.check, mode="eval").body, names, values))
    except Exception as error:
        return _claim(spec, "refuted", tuple(values), f"{type(error).__name__}: {error}")
    return _claim(spec, "holds" if truth else "refuted", tuple(values))


def _value(node: ast.expr, names: dict[str, Any], values: list[tuple[str, str]]) -> Any:
    """The value of an expression; of comparisons, `and`, `or` and `not` each operand is noted once as it is computed."""
    if isinstance(node, ast.BoolOp):
        result: Any = None
        for operand in node.values:
            result = _value(operand, names, values)
            if bool(result) != isinstance(node.op, ast.And):
                break
        return result
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, names, values)
    if isinstance(node, ast.Compare):
        return _comparison(node, names, values)
    result = _run(node, names)
    _note(node, result, values)
    return result


def _comparison(node: ast.Compare, names: dict[str, Any], values: list[tuple[str, str]]) -> Any:
    left = _run(node.left, names)
    _note(node.left, left, values)
    result: Any = True
    for operator, right_node in zip(node.ops, node.comparators, strict=True):
        right = _run(right_node, names)
        _note(right_node, right, values)
        test = ast.Compare(ast.Name("left", ast.Load()), [operator], [ast.Name("right", ast.Load())])
        result = _run(test, {"left": left, "right": right})
        if not result:
            return result
        left = right
    return result


def _run(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<claim>", "eval"), names)


def _note(node: ast.expr, value: Any, values: list[tuple[str, str]]) -> None:
    if not isinstance(node, ast.Constant) and not _is_literal(node):
        values.append((ast.unparse(node), _short(repr(value))))


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _SHOWN else flat[: _SHOWN - 1] + "…"


def _claim(spec: claims.Spec, verdict: Any, values: tuple[tuple[str, str], ...] = (), error: str = "") -> Claim:
    return Claim(spec.id, spec.check, spec.line, spec.expected, verdict, spec.condition, values, error)
