"""Writes the functions that make records of one type, as Python source, from its type hints.

A trace has hundreds of thousands of records. A function with one line for each field is several times faster than a
loop over the fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any


@cache
def maker(kind: Any) -> Callable[..., Any]:
    """Returns a function that makes a record from all its fields, by position.

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
