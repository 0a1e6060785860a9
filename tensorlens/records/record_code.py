"""Makes the functions that make records of one type from their fields.

A trace has hundreds of thousands of records. The functions have a twin in C (`_record_maker.c`), used if a compiler was
there when TensorLens was installed; `TENSORLENS_PURE_PYTHON=1` disables it. In Python, a function with one line for
each field is several times faster than a loop over the fields: its source is written here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tensorlens.compiled_sources import is_built_from


@cache
def maker(kind: Any) -> Callable[..., Any]:
    """Returns a function that makes a record from all its fields, by position."""
    return in_python(kind) if _c is None else _c.maker(kind, tuple(field.name for field in fields(kind)))


def in_python(kind: Any) -> Callable[..., Any]:
    """Returns such a function that needs no compiled code.

    It fills an object of a class that is not frozen, with the same slots, and makes that a `kind`: a frozen dataclass
    with slots sets each field through `object.__setattr__`, which takes three times as long.
    """
    names = [field.name for field in fields(kind)]
    parameters = ", ".join(names)
    body = "".join(f"    record_.{name} = {name}\n" for name in names)  # `_`: a field may have any of these names
    source = f"def make_({parameters}):\n    record_ = new_(twin_)\n{body}    record_.__class__ = kind_\n"
    twin = type(f"_{kind.__name__}", (), {"__slots__": kind.__slots__})
    scope = {"new_": object.__new__, "twin_": twin, "kind_": kind}
    return _compiled(f"{source}    return record_\n", "make_", scope)


def _compiled(source: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(source, f"<{__name__}>", "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function


def _loaded() -> Any:
    """Returns the module with the twin in C; None if it is missing, not wanted or built from another source."""
    with suppress(ImportError):
        from tensorlens.records import _record_maker

        known = is_built_from(Path(__file__).with_name("_record_maker.c"), _record_maker.SOURCE)
        return _record_maker if known and not os.environ.get("TENSORLENS_PURE_PYTHON") else None
    return None


_c = _loaded()
