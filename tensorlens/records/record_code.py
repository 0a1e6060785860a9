"""Writes the functions that make and read records of one type, as Python source, from its type hints.

A trace has hundreds of thousands of records. A function with one line for each field is several times faster than a
loop over the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

Decoder = Callable[[Any], Any]


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


def decoder(kind: Any, checks: Mapping[str, tuple[str, Decoder]], otherwise: Decoder) -> Decoder:
    """Returns a function from a JSON object to a record.

    `checks` has for each field the lines that check the value `v`, or replace it, and the function that they call `d`.
    An object whose fields are not those of `kind` in their order goes to `otherwise`.
    """
    names = tuple(checks)
    values = {name: f"v{n}" for n, name in enumerate(names)}
    lines = ["def decode(value):", "    if type(value) is not dict or tuple(value) != names: return otherwise(value)"]
    lines.append(f"    {', '.join(values.values())}, = value.values()")
    scope: dict[str, Any] = {"names": names, "otherwise": otherwise, "make": maker(kind)}
    for n, (name, (text, decode)) in enumerate(checks.items()):
        lines += (f"    {line}" for line in text.format(v=values[name], d=f"d{n}").splitlines())
        scope[f"d{n}"] = decode
    lines.append(f"    return make({', '.join(values.values())})")
    return _compiled("\n".join(lines), "decode", scope)


def _compiled(source: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    exec(compile(source, f"<{__name__}>", "exec"), scope)
    function: Callable[..., Any] = scope[name]
    return function
