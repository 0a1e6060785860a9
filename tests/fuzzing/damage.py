"""Damages saved traces: their bytes, their structure, their values."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from fuzzing.programs import HOSTILE

Place = tuple[Any, Any]  # a container of JSON data, and the key or the position in it

WHOLE = (-1, 0, 1, 2, 3, 77, 2**31, 2**63, -(2**64), 10**15, 10**300, 10**4000)
FRACTIONS = (0.5, -0.0, float("inf"), float("nan"))
VALUES: tuple[Any, ...] = (None, True, False, [], {}, [[]], {"": {}}, *WHOLE, *FRACTIONS, *HOSTILE)
_NESTED = 50_000
RAW = (
    "[" * _NESTED,
    "[" * _NESTED + "]" * _NESTED,
    '{"a":' * _NESTED + "1" + "}" * _NESTED,
    "9" * 100_000,
    "-",
    "1e999999",
    "NaN",
    '"\\ud800\\udc00\\ud800"',
    '"' + "x" * 1_000_000 + '"',
    "\x00",
    "\ufeff",
    "'",
    ",",
    "/*",
)


class Corpus(tuple[str, ...]):
    """Holds the texts of saved traces, and shows short when hypothesis prints its arguments."""

    def __repr__(self) -> str:
        return f"{len(self)} saved traces"


def places(value: Any) -> Iterator[Place]:
    """Yields every place in JSON data."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from places(item)


@st.composite
def damaged(draw: st.DrawFn, texts: Corpus) -> bytes:
    """Draws one of `texts`, saved traces, with something wrong in it."""
    text = texts[draw(st.integers(0, len(texts) - 1))]
    kind = draw(st.sampled_from(("alike",) * 5 + ("values", "bytes", "raw", "parts", "head")))
    if kind == "bytes":
        return draw(wrong_bytes(text.encode()))
    if kind == "raw":
        start = random.Random(draw(st.integers(0, 2**32))).randrange(len(text))
        return (text[:start] + draw(st.sampled_from(RAW)) + text[start + draw(st.integers(0, 40)) :]).encode()
    data = json.loads(text)
    if kind == "head":
        data[draw(st.sampled_from(("format", "version", "trace")))] = draw(st.sampled_from(VALUES))
    for _ in range(draw(st.integers(1, 4)) if kind != "head" else 0):
        _change(draw, data["trace"], kind)
    return json.dumps(data).encode("utf-8", "surrogatepass")


@st.composite
def wrong_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Draws `content` with some bytes changed, missing or inserted."""
    made = bytearray(content)
    chance = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.sampled_from((1, 1, 1, 4)))):
        start = chance.randrange(max(len(made), 1))
        how = draw(st.sampled_from(("flip", "cut", "drop", "insert", "repeat")))
        stop = start + draw(st.integers(1, 200))
        if how == "flip" and made:
            made[start] ^= 1 << draw(st.integers(0, 7))
        elif how == "cut":
            del made[start:]
        elif how == "drop":
            del made[start:stop]
        elif how == "insert":
            made[start:start] = draw(st.binary(max_size=20))
        else:
            made[start:start] = made[start:stop]
    return bytes(made)


def _alike(value: Any) -> tuple[Any, ...]:
    if isinstance(value, bool):
        return (not value,)
    return WHOLE if isinstance(value, int) else HOSTILE if isinstance(value, str) else (value,)


def _change(draw: st.DrawFn, trace: dict[str, Any], kind: str) -> None:
    """Replaces one value (`alike`: by one of the same type; `parts`: by one from elsewhere, or none)."""
    there = list(places(trace))
    chance = random.Random(draw(st.integers(0, 2**32)))  # an integer drawn by hypothesis is small most of the time
    container, key = chance.choice(there)
    if kind in ("alike", "values"):
        container[key] = draw(st.sampled_from(VALUES if kind == "values" else _alike(container[key])))
        return
    other, place = chance.choice(there)
    how = draw(st.sampled_from(("copy", "same kind", "swap", "drop", "repeat", "rename")))
    if how == "copy":
        container[key] = json.loads(json.dumps(other[place]))
    elif how == "same kind":
        same = [value for value, _ in ((c[k], k) for c, k in there) if type(value) is type(container[key])]
        container[key] = json.loads(json.dumps(chance.choice(same)))
    elif how == "swap":
        container[key], other[place] = json.loads(json.dumps(other[place])), json.loads(json.dumps(container[key]))
    elif how == "drop":
        del container[key]
    elif isinstance(container, list):
        container.insert(key, json.loads(json.dumps(container[key])))
    else:
        container[draw(st.sampled_from(HOSTILE))] = container.pop(key)
