"""Checks the claims of a script while it runs, in the script's own names, unseen by the tracer and by the script."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import torch

from tensorlens.records import claim_syntax
from tensorlens.records.claim import Claim
from tensorlens.records.source import one_line, unwarned
from tensorlens.tracer.entry.claim_effects import Snapshot
from tensorlens.tracer.isolation.guard import safe_text

_CALL = "__tensorlens_check_claim__"
_SHOWN = 120  # characters of a value
_AT = re.compile(r" object at 0x[0-9a-fA-F]+")  # differs in every run
Values = list[tuple[str, str]]
T = TypeVar("T")


class ClaimChecker:
    """Checks the claims of one script. `quiet()` pauses the recording during a check."""

    def __init__(
        self, specs: tuple[claim_syntax.ClaimSpec, ...], quiet: Callable[[], AbstractContextManager[object]]
    ) -> None:
        self._specs = specs
        self._quiet = quiet
        self._found: dict[int, Claim] = {}
        self._unchecked: dict[int, str] = {}  # why
        self._rounds: Counter[int] = Counter()
        self._addresses: dict[int, int] = {}

    def instrument(self, source: str | bytes, filename: str) -> types.CodeType:
        """Returns the script's code with calls in it that check its claims. SyntaxError is the script's own."""
        with unwarned():  # Python has already warned about this source
            tree = claim_syntax.instrument(source, filename, self._specs, _CALL)
            code: types.CodeType = compile(tree, filename, "exec", dont_inherit=True)
        setattr(builtins, _CALL, self._check)
        return code

    def results(self) -> tuple[Claim, ...]:
        """Returns the claims in order, after the script has ended."""
        vars(builtins).pop(_CALL, None)
        return tuple(self._result(number, spec) for number, spec in enumerate(self._specs))

    def _result(self, number: int, spec: claim_syntax.ClaimSpec) -> Claim:
        unchecked = one_line(self._unchecked.get(number, ""))
        found = None if unchecked else self._found.get(number)
        if found is not None and self._rounds[number] == 1:
            found = replace(found, round=0)
        return found or _claim(spec, "not reached", error=unchecked)

    def _check(self, number: int, raised: bool = False) -> None:
        """Checks a claim. The instrumented script calls this. Of the rounds of a loop, the first that fails is kept."""
        self._rounds[number] += 1
        known = self._found.get(number)
        if known is not None and not known.as_expected:
            return
        spec = self._specs[number]
        try:
            found = self._checked(spec, sys.exception() if raised else None, sys._getframe(1))
            self._found[number] = found if found.as_expected else replace(found, round=self._rounds[number])
        except Exception as internal_error:  # the script goes on
            text = f"{type(internal_error).__name__}: {safe_text(internal_error)}"
            self._unchecked[number] = f"{text}, in the checker itself"

    def _checked(self, spec: claim_syntax.ClaimSpec, raised: BaseException | None, frame: types.FrameType) -> Claim:
        if spec.raises is not None:
            return _exception_claim(spec, raised)
        names = {**frame.f_globals, **frame.f_locals}
        names.pop("__warningregistry__", None)
        with self._quiet(), _unchanged():
            before = _result_or_none(lambda: Snapshot(frame))
            claim = self._evaluate(spec, names)
            changed = None if before is None else _result_or_none(lambda: before.changes(frame))
            return replace(claim, changed=changed or "")

    def _evaluate(self, spec: claim_syntax.ClaimSpec, names: dict[str, Any]) -> Claim:
        values: Values = []
        try:
            truth = bool(self._value(ast.parse(spec.check, mode="eval").body, names, values))
        except Exception as error:  # whatever the check raises, it shows neither verdict
            verdict = "refuted" if spec.expected == "holds" else "not reached"
            return _claim(spec, verdict, values, one_line(f"{type(error).__name__}: {error}"))
        return _claim(spec, "holds" if truth else "refuted", values)

    def _value(self, node: ast.expr, names: dict[str, Any], values: Values) -> Any:
        """Evaluates an expression. Computes and notes each operand of comparisons, `and`, `or` and `not` once."""
        if isinstance(node, ast.BoolOp):
            result: Any = None
            for operand in node.values:
                result = self._value(operand, names, values)
                if bool(result) != isinstance(node.op, ast.And):
                    break
            return result
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return not self._value(node.operand, names, values)
        if isinstance(node, ast.Compare):
            return self._comparison(node, names, values)
        return self._noted_value(node, names, values)

    def _comparison(self, node: ast.Compare, names: dict[str, Any], values: Values) -> Any:
        left = _run(node.left, names)
        operands = list(zip(node.ops, node.comparators, strict=True))
        if len(operands) == 1 and isinstance(operands[0][0], ast.Is | ast.IsNot) and isinstance(left, torch.Tensor):
            return self._identity(node, left, names, values)
        self._note(node.left, left, values)
        result: Any = True
        for operator, operand in operands:
            right = self._noted_value(operand, names, values)
            test = ast.Compare(ast.Name("left", ast.Load()), [operator], [ast.Name("right", ast.Load())])
            result = _run(test, {"left": left, "right": right})
            if not result:
                break
            left = right
        return result

    def _identity(self, node: ast.Compare, left: torch.Tensor, names: dict[str, Any], values: Values) -> bool:
        """Evaluates `y is x` of two tensors. Notes whether they share memory, not their values."""
        right = _run(node.comparators[0], names)
        if isinstance(right, torch.Tensor):
            values.append((f"{ast.unparse(node.left)} and {ast.unparse(node.comparators[0])}", _objects(left, right)))
        else:
            self._note(node.left, left, values)
            self._note(node.comparators[0], right, values)
        return (left is right) is isinstance(node.ops[0], ast.Is)

    def _noted_value(self, node: ast.expr, names: dict[str, Any], values: Values) -> Any:
        """Evaluates an expression and notes its value."""
        value = _run(node, names)
        self._note(node, value, values)
        return value

    def _note(self, node: ast.expr, value: Any, values: Values) -> None:
        """Notes a value, unless the text of its expression already shows it: `1`, `float`, `torch.float32`."""
        if _is_literal(node) or (isinstance(value, type) and not isinstance(node, ast.Call)):
            return
        text, shown = ast.unparse(node), self._shown(node, value)
        if text != shown:
            values.append((text, shown))

    def _shown(self, node: ast.expr, value: Any) -> str:
        """Returns a short text of a value. Addresses are numbered: only which of them are equal matters."""
        if isinstance(node, ast.Call) and isinstance(value, int) and _is_address(node.func):
            return f"address {self._addresses.setdefault(value, len(self._addresses) + 1)}"
        return one_line(_AT.sub("", repr(value)), _SHOWN)


def _result_or_none(read: Callable[[], T]) -> T | None:
    """Returns what `read` returns, or None if an object of the script raises."""
    try:
        return read()
    except Exception:
        return None


@contextmanager
def _unchanged() -> Iterator[None]:
    """Restores what a check may change: the grad mode and the random state. Its warnings are dropped."""
    grad = torch.is_grad_enabled()
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with unwarned(), torch.random.fork_rng(devices):
            yield
    finally:
        torch._C._set_grad_enabled(grad)


def _exception_claim(spec: claim_syntax.ClaimSpec, error: BaseException | None) -> Claim:
    """Checks a `raises` claim against the exception of its statement."""
    if error is None:
        return _claim(spec, "refuted", [("raised", "nothing")])
    name, part = spec.raises or ("", "")
    kinds = type(error).__mro__
    named = any(name in (kind.__name__, f"{kind.__module__}.{kind.__qualname__}") for kind in kinds)
    matches = named and part in one_line(str(error))
    return _claim(spec, "holds" if matches else "refuted", [(type(error).__name__, one_line(str(error), 2 * _SHOWN))])


def _run(node: ast.expr, names: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "<claim>", "eval"), names)


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _objects(one: torch.Tensor, other: torch.Tensor) -> str:
    """Says whether two tensors are one object, or two with or without the same memory."""
    if one is other:
        return "one object"
    try:
        shared = one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr() != 0
    except (RuntimeError, NotImplementedError):  # sparse, and others without a storage
        return "two objects"
    return "two objects, one memory" if shared else "two objects, two memories"


def _is_address(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("data_ptr", "id")


def _claim(spec: claim_syntax.ClaimSpec, verdict: Any, values: Values = [], error: str = "") -> Claim:  # noqa: B006 - read only
    return Claim(spec.id, spec.check, spec.line, spec.expected, verdict, spec.condition, tuple(values), error)
