"""Puts data into an HTML document with its style and its script, which are allowed by their hashes alone.

What a program or a user wrote is in two places: as text in a `<pre>`, escaped, and in the packed data, which is base64
and so has no character that HTML knows. The script shows it with `textContent`.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from functools import cache
from importlib.resources import files
from typing import Any

from tensorlens.render.safe_text import cut, safe, safe_lines

SCRIPTS = (
    "unpack", "model", "cursor", "elements", "roving", "headline", "findings", "source", "states", "lanes",
    "graph_rows", "graph", "tables", "time", "comparison", "selftest", "main",
)  # fmt: skip
"""The scripts, in the order in which they run; each knows those before it."""

OF_RANKS = ("ranks",)
"""The scripts and styles that only the page of several ranks has."""

MOST_TEXT = 18_000  # characters of the text report, which is not packed
_LONGEST_TITLE = 80


def document(
    title: str, data: dict[str, Any], text: str, more: tuple[str, ...] = (), most_text: int = MOST_TEXT
) -> str:
    """Returns the document. `text` is the report for a browser that runs no script; `more` names files that only pages
    of this kind need: a script and a style."""
    style = "".join(page_file(f"{name}.css") for name in ("page", *more))
    script = page_script(more)
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    values = {
        "policy": policy,
        "title": html.escape(cut(safe(title), _LONGEST_TITLE)),
        "style": style,
        "text": html.escape(_limited(text, most_text)),
        "data": packed(data),
        "script": script,
    }
    parts = page_file("page.html").split("{{")
    filled = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}}")
        filled += [values[name], rest]
    return "".join(filled)


def packed(data: dict[str, Any]) -> str:
    """Returns data as JSON, compressed, in base64."""
    raw = json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(raw, 9, mtime=0)).decode()


@cache
def page_file(name: str) -> str:
    """Returns a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


@cache
def page_script(more: tuple[str, ...] = ()) -> str:
    """Returns all scripts as one function, so that they make no global names; without comments and indentation."""
    parts = _packed_lines("\n".join(page_file(f"scripts/{name}.js") for name in (*more, *SCRIPTS)))
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def _packed_lines(text: str) -> str:
    """Returns the lines of a script that are no comments, without indentation. No string in it has several lines."""
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _limited(text: str, most: int) -> str:
    """Returns the text report safe to show, and not too long."""
    safe_text = "\n".join(safe_lines(text.strip("\n")))
    if len(safe_text) <= most:
        return safe_text
    return safe_text[:most].rpartition("\n")[0] + "\n… the rest is not in this file: --format markdown has it"
