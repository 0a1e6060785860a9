"""Measured things in words: errors as PyTorch words them, numbers short enough for a table."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tensorlens.compare.comparison_records import Answer

LONGEST = 60  # characters of a printed tensor


def raised(error: BaseException, text: str = "error", value: Any = "error") -> Answer:
    """An exception as an answer: PyTorch's first paragraph, with the code of the page that explains it."""
    message = without_places(str(error).split("\n\n")[0])
    return Answer(value, text, f"{type(error).__name__}: {message}".removesuffix(": "), classify(str(error)))


def without_places(text: str) -> str:
    """A message on one line, without the places in PyTorch's C++ sources, which are nobody's who reads it."""
    return one_line(re.sub(r"\s*\(Triggered internally at [^()]*\)", "", text))


def one_line(text: str) -> str:
    return " ".join(text.split())


def classify(message: str) -> str:
    """The catalogue code of an error message, "" for an unknown one."""
    try:
        from tensorlens.records import error_messages
    except ImportError:
        return ""
    return error_messages.classify(message)


def yes(value: bool) -> Answer:
    return Answer(value, "yes" if value else "no")


def numbers(tensor: Any, with_shape: bool = True) -> str:
    """A gradient as short text: `[0.1, 0.2]`, or `1 everywhere`, or the first of them and the shape."""
    if tensor is None:
        return "None"
    tensor = tensor.detach() + 0  # autograd's zeros may have no memory behind them
    flat = tensor.reshape(-1).tolist()
    short = [_number(value) for value in flat]
    if len(short) > 1 and len(set(short)) == 1:
        return f"{short[0]} everywhere"
    text = _nested(tensor.tolist())
    if len(text) <= LONGEST:
        return text
    return f"{', '.join(short[:4])}, ...{f' of shape {shape_text(tuple(tensor.shape))}' if with_shape else ''}"


def digest(tensors: Sequence[Any]) -> str:
    """The numbers of tensors as text that can be compared, whatever their shape and dtype; -0.0 is 0.0."""
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
    """Whether two digests hold the same numbers but for rounding, and the same words."""
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
    """At most a few lines of a table cell."""
    return text if len(text) <= 2 * LONGEST else f"{text[: 2 * LONGEST].rsplit(' ', 1)[0]} ..."


def shape_text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def amount(size: float) -> str:
    """A number of bytes as people read it."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 10 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def duration(nanoseconds: float) -> str:
    """A time per call as people read it."""
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
