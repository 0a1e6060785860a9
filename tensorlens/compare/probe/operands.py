"""Turns the text that a user typed into code: a method, property, function, context, expression or file."""

from __future__ import annotations

import ast
import copy
import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from tensorlens.compare.comparison_records import Operand
from tensorlens.compare.probe import arguments, settings, typed_operands
from tensorlens.compare.probe.code import Code, loaded, namespace
from tensorlens.compare.probe.inputs import Subject
from tensorlens.compare.probe.measured_text import one_line
from tensorlens.errors import UsageError
from tensorlens.paths import is_file

NAMESPACES = {
    "torch": torch,
    "F": torch.nn.functional,
    "nn.functional": torch.nn.functional,
    "linalg": torch.linalg,
    "special": torch.special,
    "fft": torch.fft,
    "autograd": torch.autograd,
    "np": namespace().get("np"),
    "copy": copy,
}
WRITTEN_SHORT = ("torch", "F", "np", "copy")  # a call writes these without `torch.` in front
MISTAKES = (NameError, AttributeError, TypeError, ImportError)  # mean that the typed text is wrong
MAX_READINGS = 400  # to try for one operand on inputs of one shape
BODY = "r = x * 2"  # the body of a `with` block


@dataclass(frozen=True, slots=True)
class Resolved:
    """An operand and its code."""

    operand: Operand
    code: Code


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An operand that ran on none of the inputs: the first call that was tried, its error, and what to type instead."""

    first: Resolved
    error: Exception
    advice: str


def resolve(
    text: str, subjects: Sequence[Callable[[], Subject]], begin: Callable[[str], bool] = lambda _: True
) -> Resolved | Unresolved:
    """Returns the first reading of `text` that runs on one of the subjects.

    `begin` is called with each call before it is tried, and returns whether it may be.

    Raises:
        UsageError: `text` can't be read.
    """
    first: Unresolved | None = None
    avoided: Unresolved | None = None
    for resolved in islice(readings(text), MAX_READINGS):
        if not begin(resolved.operand.call):
            avoided = avoided or Unresolved(resolved, RuntimeError("the call crashes the process"), "")
            continue
        for fresh in subjects:
            try:
                with settings.restored():
                    result = resolved.code(fresh())
            except Exception as error:
                first = first or Unresolved(resolved, error, _advice(text, resolved))
            else:
                return _around_body(resolved) if _is_context(result) else resolved
    unresolved = first or avoided
    if unresolved is None:
        raise unknown(text)
    return unresolved


def readings(text: str) -> Iterator[Resolved]:
    """Yields every call that `text` may mean, the likeliest first; nothing for a name that torch does not have."""
    script = re.fullmatch(r"(.+\.py):(\w+)", text)
    if script:
        yield from _script_function(text, Path(script[1]), script[2])
    elif re.fullmatch(r"x\.\w+|(?![xy]\b)[A-Za-z_][\w.]*", text):
        if text in typed_operands.MEANT:
            call = typed_operands.MEANT[text]
            yield read(text, call, "method" if call.startswith("x.") else "function")
        yield from (read(text, call, kind) for call, kind in _calls(text))
    else:
        if not text.strip():
            raise UsageError("an operand is empty")
        try:
            yield read(text, typed_operands.completed(text), "code")
        except (SyntaxError, ValueError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else str(error)
            raise UsageError(f'can\'t read the operand "{one_line(text)}": {reason}') from None


def read(text: str, call: str, kind: str) -> Resolved:
    """Makes an operand whose code is known already."""
    if kind == "file":
        path, name = text.rsplit(":", 1)
        function = _function(path, name)
        return Resolved(Operand(text, call, kind), Code(call, {name: function}))
    return Resolved(Operand(text, call, kind), Code(call))


def nearest(error: Exception) -> str:
    """Returns names of torch that are similar to an unknown name in an expression, for a message; "" if there are
    none."""
    wrong = getattr(error, "name", None)
    near = difflib.get_close_matches(wrong, sorted(_known_names()), n=3) if isinstance(wrong, str) else []
    return f"; nearest: {', '.join(near)}" if near else ""


def skipped(text: str) -> Resolved:
    """Returns a placeholder for an operand that must not be read."""
    return Resolved(Operand(text, text, "code"), Code("x"))


def unknown(text: str) -> UsageError:
    """Returns the error for a name that torch does not have."""
    text = one_line(text)
    near = difflib.get_close_matches(text.rsplit(".", 1)[-1], sorted(_known_names()), n=3, cutoff=0.6)
    hint = f"; nearest: {', '.join(near)}" if near else '; an operand is an op, a context or code such as "x.view(-1)"'
    return UsageError(f'unknown operand "{text}"{hint}')


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """Yields (code, kind) for a name, dotted or not: first with as few arguments as possible, then with candidates."""
    prefix, _, name = text.rpartition(".")
    if prefix in ("", "x", "Tensor", "torch.Tensor") and hasattr(torch.Tensor, name):
        yield from _member_calls(name)
        return
    for space, module in NAMESPACES.items():
        function = getattr(module, name, None)
        if prefix not in ("", space, f"torch.{space}") or not callable(function):
            continue
        path = space if space in WRITTEN_SHORT else f"torch.{space}"
        if isinstance(function, type) and hasattr(function, "__enter__"):
            for argument in ("", "False", "x.device.type"):
                yield f"with {path}.{name}({argument}): {BODY}", "context"
            return
        yield f"{path}.{name}(x)", "function"
        for listed in arguments.argument_lists(name, function):
            source = re.sub(r"^y(?=, |$)", "x", listed)  # the first tensor argument of a function is x
            if source.startswith(("x", "(x")):
                yield f"{path}.{name}({source})", "function"
        return


def _member_calls(name: str) -> Iterator[tuple[str, str]]:
    member = getattr(torch.Tensor, name)
    if not callable(member):
        yield f"x.{name}", "property"
        return
    yield f"x.{name}()", "method"
    for listed in arguments.argument_lists(name, member, method=True):
        yield f"x.{name}({_unpacked(listed)})", "method"


def _unpacked(listed: str) -> str:
    """Turns a lone `(2, 3)` into `2, 3`, as people write the sizes of a method."""
    lone = re.fullmatch(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)", listed)
    return lone[1].removesuffix(",") if lone else listed


def _script_function(text: str, path: Path, name: str) -> Iterator[Resolved]:
    if not is_file(path):
        raise UsageError(f"no such file: {path}")
    try:
        yield read(text, f"{name}(x)", "file")
        yield read(text, f"{name}(x, y)", "file")
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} can't be run: {type(error).__name__}: {error}") from None


@cache
def _function(path: str, name: str) -> Callable[..., Any]:
    with settings.restored():
        return loaded(Path(path), name)


def _is_context(result: object) -> bool:
    """Returns whether an operand is a context manager. A hook's handle is one too, but nobody uses it as one."""
    if isinstance(result, (torch.Tensor, RemovableHandle)):
        return False
    return hasattr(result, "__enter__") and hasattr(result, "__exit__")


def _around_body(resolved: Resolved) -> Resolved:
    """Returns the operand as a `with` block around `BODY`."""
    call = f"with {ast.unparse(ast.parse(resolved.operand.call))}: {BODY}"
    return read(resolved.operand.operand, call, "context")


def _advice(text: str, resolved: Resolved) -> str:
    """Says what to type if no arguments were found."""
    name = text.rpartition(".")[2]
    if resolved.operand.kind == "method":
        missing = arguments.signature_text(name, getattr(torch.Tensor, name))
        return f'give its arguments: "x.{name}({missing})", as in "x.view(-1)"'
    if resolved.operand.kind == "function":
        return f'give its arguments: "{resolved.operand.call[:-1]}, ...)", as in "x.view(-1)"'
    return ""


def _known_names() -> set[str]:
    spaces: list[Any] = [torch.Tensor, torch, torch.nn.functional]
    return {name for space in spaces for name in dir(space) if not name.startswith("_")}
