"""From what the user typed to code that runs: methods, properties, functions, contexts, expressions, files."""

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
WRITTEN_SHORT = ("torch", "F", "np", "copy")  # as they are in an operand; the others are parts of torch
MISTAKES = (NameError, AttributeError, TypeError, ImportError)  # of the one who typed it, not of torch
READINGS = 400  # tried for one operand on inputs of one shape
BODY = "r = x * 2"  # what a context manager is put around


@dataclass(frozen=True, slots=True)
class Resolved:
    """An operand and its code."""

    operand: Operand
    code: Code


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An operand that ran on none of the inputs: the call tried first, and how it failed."""

    first: Resolved
    error: Exception
    advice: str


def resolve(
    text: str, subjects: Sequence[Callable[[], Subject]], begin: Callable[[str], bool] = lambda _: True
) -> Resolved | Unresolved:
    """The first way of reading `text` that runs on one of the subjects.

    `begin` is told each call before it is tried, and says whether it may be.

    Raises:
        UsageError: `text` can't be read at all.
    """
    first: Unresolved | None = None
    avoided: Unresolved | None = None
    for resolved in islice(readings(text), READINGS):
        if not begin(resolved.operand.call):
            avoided = avoided or Unresolved(resolved, RuntimeError("the call brings the process down"), "")
            continue
        for fresh in subjects:
            try:
                with settings.restored():
                    result = resolved.code(fresh())
            except Exception as error:
                first = first or Unresolved(resolved, error, _advice(text, resolved))
            else:
                return _around_body(resolved) if _is_context(result) else resolved
    found = first or avoided
    if found is None:
        raise unknown(text)
    return found


def readings(text: str) -> Iterator[Resolved]:
    """Every call that `text` may stand for, likeliest first; none for a name that torch has not."""
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
    """The operand whose code is known already."""
    if kind == "file":
        path, name = text.rsplit(":", 1)
        function = _function(path, name)
        return Resolved(Operand(text, call, kind), Code(call, {name: function}))
    return Resolved(Operand(text, call, kind), Code(call))


def nearest(error: Exception) -> str:
    """Names of torch like the one that an expression got wrong, for a message; "" if none is near."""
    wrong = getattr(error, "name", None)
    near = difflib.get_close_matches(wrong, sorted(_known_names()), n=3) if isinstance(wrong, str) else []
    return f"; nearest: {', '.join(near)}" if near else ""


def skipped(text: str) -> Resolved:
    """A stand-in for an operand that is not even to be read."""
    return Resolved(Operand(text, text, "code"), Code("x"))


def unknown(text: str) -> UsageError:
    """The one line for a name that is nothing in torch."""
    text = one_line(text)
    near = difflib.get_close_matches(text.rsplit(".", 1)[-1], sorted(_known_names()), n=3, cutoff=0.6)
    hint = f"; nearest: {', '.join(near)}" if near else '; an operand is an op, a context or code such as "x.view(-1)"'
    return UsageError(f'unknown operand "{text}"{hint}')


def _calls(text: str) -> Iterator[tuple[str, str]]:
    """(code, kind) for a name, dotted or not: first the call without arguments, then with arguments found."""
    prefix, _, name = text.rpartition(".")
    if prefix in ("", "x", "Tensor", "torch.Tensor") and hasattr(torch.Tensor, name):
        yield from _member_calls(name)
        return
    for space, module in NAMESPACES.items():
        found = getattr(module, name, None)
        if prefix not in ("", space, f"torch.{space}") or not callable(found):
            continue
        path = space if space in WRITTEN_SHORT else f"torch.{space}"
        if isinstance(found, type) and hasattr(found, "__enter__"):
            for given in ("", "False", "x.device.type"):
                yield f"with {path}.{name}({given}): {BODY}", "context"
            return
        yield f"{path}.{name}(x)", "function"
        for given in arguments.argument_lists(name, found):
            source = re.sub(r"^y(?=, |$)", "x", given)  # the first tensor of a function is the source
            if source.startswith(("x", "(x")):
                yield f"{path}.{name}({source})", "function"
        return


def _member_calls(name: str) -> Iterator[tuple[str, str]]:
    member = getattr(torch.Tensor, name)
    if not callable(member):
        yield f"x.{name}", "property"
        return
    yield f"x.{name}()", "method"
    for given in arguments.argument_lists(name, member, method=True):
        yield f"x.{name}({_unpacked(given)})", "method"


def _unpacked(given: str) -> str:
    """`(2, 3)` alone -> `2, 3`, as people write sizes for a method."""
    lone = re.fullmatch(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)", given)
    return lone[1].removesuffix(",") if lone else given


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
    """Whether an operand gives a context manager. A hook's handle is one too, but no block is meant to be its."""
    if isinstance(result, (torch.Tensor, RemovableHandle)):
        return False
    return hasattr(result, "__enter__") and hasattr(result, "__exit__")


def _around_body(resolved: Resolved) -> Resolved:
    """An expression that makes a context manager, put around a body."""
    call = f"with {ast.unparse(ast.parse(resolved.operand.call))}: {BODY}"
    return read(resolved.operand.operand, call, "context")


def _advice(text: str, resolved: Resolved) -> str:
    """What to type when no arguments were found."""
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
