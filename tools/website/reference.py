"""Writes the reference of the public Python API from its docstrings and type hints."""

from __future__ import annotations

import dataclasses
import html
import inspect
import re
from typing import Any

import tensorlens
from tensorlens.records import model, report
from tools.website.guides import copied
from tools.website.layout import Site
from tools.website.markdown_html import to_html

_PAGE = "reference.html"
_RECORDS = (report.Report, report.Diagnostic, report.Label, report.Fix, report.Edit, report.StandingOut,
            model.Trace, model.Script, model.Site, model.Span, model.Tensor, model.Storage, model.Call, model.Backward,
            model.Failure)  # fmt: skip
_INTRODUCTION = """\
`import tensorlens` gives the names below; importing it does not import torch. What is listed here stays: names, fields
and meanings change only with a new major version, and new fields may be added. The form of a report in JSON has
[a schema](docs/report.schema.json). All other modules are internal.
"""
_SECTION = re.compile(r"^(?P<title>Args|Raises|Returns|Yields):\n(?P<entries>(?:    .*\n?)+)", re.MULTILINE)


def write(site: Site) -> None:
    """Writes the page."""
    from tensorlens.session import Session  # imports torch

    parts = ["<h1>Reference</h1>", to_html(_INTRODUCTION, _PAGE, lambda link: copied(link, site))]
    parts += [_function("tensorlens.trace", tensorlens.trace), _class("Session", Session)]
    parts += [_function("tensorlens.load", tensorlens.load), *map(_record, _RECORDS)]
    site.write(_PAGE, "Reference", "\n".join(parts))


def _function(name: str, value: Any, level: int = 2) -> str:
    signature = re.sub(r"tensorlens\.[\w.]+\.", "", str(inspect.signature(value, eval_str=False)).replace("'", ""))
    anchor = name.rpartition(".")[2]
    heading = f'<h{level} id="{anchor}"><code>{html.escape(name)}</code></h{level}>'
    return f'{heading}\n<pre class="signature">{html.escape(name + signature)}</pre>\n{_docstring(value)}'


def _class(name: str, value: type) -> str:
    parts = [f'<h2 id="{name}"><code>{name}</code></h2>', _docstring(value)]
    methods = [each for key, each in vars(value).items() if not key.startswith("_") and inspect.isfunction(each)]
    return "\n".join([*parts, *(_function(f"{name}.{each.__name__}", each, 3) for each in methods)])


def _record(record: type) -> str:
    rows = "\n".join(
        f"<tr><td><code>{field.name}</code></td><td><code>{html.escape(str(field.type))}</code></td></tr>"
        for field in dataclasses.fields(record)
    )
    table = f"<table><thead><tr><th>field</th><th>type</th></tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f"{_class(record.__name__, record)}\n{table}"


def _docstring(value: Any) -> str:
    text = inspect.getdoc(value) or ""
    return to_html(_SECTION.sub(_listed, text), _PAGE, lambda _: None)


def _listed(section: re.Match[str]) -> str:
    """Turns the entries of a section into a list."""
    entries = re.sub(r"\n(?: {8,})", " ", section["entries"])
    return f"**{section['title']}**\n\n" + re.sub(r"^ {4}", "- ", entries, flags=re.MULTILINE)
