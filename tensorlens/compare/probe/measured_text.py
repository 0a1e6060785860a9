"""Turns measurements into text: PyTorch's error messages, and numbers short enough for a table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tensorlens.compare.comparison_records import Answer

MAX_LENGTH = 60  # characters of a printed tensor


def raised(error: BaseException, text: str = "error", value: Any = "error") -> Answer:
    """Makes an answer from an exception, with the first paragraph of its message and the code of its page."""
    message = without_places(str(error).split("\n\n")[0])
    return Answer(value, text, f"{type(error).__name__}: {message}".removesuffix(": "), classify(str(error)))


def without_places(text: str) -> str:
    """Puts a message on one line and removes the places in PyTorch's C++ sources."""
    return one_line(re.sub(r"\s*\(Triggered internally at [^()]*\)", "", text))


def one_line(text: str) -> str:
    return " ".join(text.split())


def classify(message: str) -> str:
    """Returns the code of an error message's page; "" for an unknown message."""
    try:
        from tensorlens.records import error_messages
    except ImportError:
        return ""
    return error_messages.classify(message)


def yes(value: bool) -> Answer:
    return Answer(value, "yes" if value else "no")


def numbers(tensor: Any, with_shape: bool = True) -> str:
    """Writes a tensor as a short text: `[0.1, 0.2]`, or `1 everywhere`, or its first numbers and its shape."""
    if tensor is None:
        return "None"
    tensor = tensor.detach() + 0  # autograd's zeros may have no memory
    flat = tensor.reshape(-1).tolist()
    short = [_number(value) for value in flat]
    if len(short) > 1 and len(set(short)) == 1:
        return f"{short[0]} everywhere"
    text = _nested(tensor.tolist())
    if len(text) <= MAX_LENGTH:
        return text
    return f"{', '.join(short[:4])}, ...{f' of shape {shape_text(tuple(tensor.shape))}' if with_shape else ''}"


def digest(tensors: Sequence[Any]) -> str:
    """Writes the numbers of tensors as text to compare. Shape and dtype do not count, and -0.0 equals 0.0."""
    parts: list[str] = []
    for tensor in tensors:
        plain = tensor.detach()
        plain = plain.to_dense() if str(plain.layout) != "torch.strided" else plain
        plain = plain.resolve_conj().resolve_neg()
        for value in plain.reshape(-1).tolist():
            several = (value.real, value.imag) if isinstance(value, complex) else (float(value),)
            parts += [repr(each + 0.0) for each in several]
    return " ".join(parts)


def close(one: object, other: object) -> bool:
    """Returns whether two digests are equal up to rounding."""
    if not isinstance(one, str) or not isinstance(other, str):
        return one == other
    first, second = one.split(), other.split()
    return len(first) == len(second) and all(map(_close, first, second))


def _close(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=1e-5, abs_tol=1e-6)
    except ValueError:
        return False


def shortened(text: str) -> str:
    """Cuts a text to a few lines of a table cell."""
    return text if len(text) <= 2 * MAX_LENGTH else f"{text[: 2 * MAX_LENGTH].rsplit(' ', 1)[0]} ..."


def shape_text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def amount(size: float) -> str:
    """Writes a number of bytes with a unit."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def duration(nanoseconds: float) -> str:
    """Writes a time per call with a unit."""
    for unit in ("ns", "us", "ms"):
        if nanoseconds < 1000:
            return f"{nanoseconds:.3g} {unit}"
        nanoseconds /= 1000
    return f"{nanoseconds:.3g} s"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_nested, value))}]"
    return _number(value)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
