"""Writes the manual: the index of codes, and pages as plain text or Markdown. Imports no rich."""

from __future__ import annotations

import re
import textwrap

from tensorlens.diagnostics import manual
from tensorlens.diagnostics.manual import Answer
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.records.error_messages import Entry, entries

WIDTH = 80
_TIERS = {1: "Met every day, the most frequent first", 2: "Met now and then", 3: "Hardly ever met"}
_KINDS = {"error": "error", "warning": "warning", "silent": "silent mistake"}
_FAILS = {"error": "Fails", "warning": "Warns", "silent": "Goes wrong"}
_INDENT = " " * 11


def index(width: int = WIDTH, everything: bool = False) -> str:
    """Lists the codes that are met every day, or all of them, with the first sentence of each page."""
    lines: list[str] = []
    for tier, heading in _TIERS.items():
        if tier > 1 and not everything:
            break
        listed = sorted((entry for entry in entries() if entry.tier == tier), key=manual.most_often_first)
        lines += [heading, "", *(line for entry in listed for line in _listed(entry, width)), ""]
    rest = sum(entry.tier > 1 for entry in entries())
    if not everything:
        lines.append(_filled(f"{rest} more are met less often: tensorlens errors --all lists them too.", width))
    lines.append(_filled("tensorlens errors CODE shows a page; a pasted message or traceback finds its own.", width))
    lines.append(_filled(f"tensorlens errors --family NAME lists a family: {', '.join(manual.families())}.", width))
    return "\n".join(lines) + "\n"


def family_index(family: str, width: int = WIDTH) -> str:
    """Lists the codes of a family."""
    lines = [line for entry in entries() if entry.family == family for line in _listed(entry, width)]
    return "\n".join([f"Family {family}", "", *lines]) + "\n"


def _listed(entry: Entry, width: int) -> list[str]:
    lines = textwrap.wrap(entry.summary, width - len(_INDENT), break_long_words=False)
    return [f"  {entry.kind:<8} {entry.code}", *(_INDENT + line for line in lines)]


def page_text(answer: Answer, width: int = WIDTH) -> str:
    """Writes an answer as plain text: the remark, and the pages one after the other."""
    remark = [_wrapped(answer.remark, width) + "\n"] if answer.remark else []
    return "\n".join([*remark, *(_titled(entry, width) for entry in answer.entries)])


def page_markdown(answer: Answer) -> str:
    """Writes an answer as Markdown."""
    remark = [f"{answer.remark}\n"] if answer.remark else []
    return "\n".join([*remark, *(f"# {entry.code}\n\n{markdown_body(entry)}" for entry in answer.entries)])


def markdown_body(entry: Entry) -> str:
    """Writes a page as Markdown, without its title: PyTorch's message, the sections, what else to read."""
    said = [f"> {entry.message}"] if entry.message else []
    see = ["## See also", "\n".join(f"- `tensorlens {text}`" for text in see_also(entry))]
    text = _with_words(manual.page(entry.code)).replace("## Fails", f"## {_FAILS[entry.kind]}")
    return "\n\n".join([*said, text, *see]) + "\n"


def see_also(entry: Entry) -> tuple[str, ...]:
    """Returns the commands to try next: lessons, comparisons, other pages, `explain` for the reader's script."""
    return (*entry.see, "explain your_script.py")


def _titled(entry: Entry, width: int) -> str:
    raises = f", {entry.raises}" if entry.raises else ""
    header = f"{entry.code} ({_KINDS[entry.kind]}{raises})"
    said = ""
    if entry.message:
        quoted = textwrap.wrap(entry.message, width - 4, break_long_words=False, break_on_hyphens=False)
        said = "PyTorch says:\n\n" + "".join(f"    {line}\n" for line in quoted) + "\n"
    text = _wrapped(_plain(manual.page(entry.code), entry, width), width)
    return f"{header}\n{'-' * len(header)}\n\n{said}{text}\n\n{_see_text(entry)}"


def _see_text(entry: Entry) -> str:
    """Lists the commands to try next, each with what it shows."""
    what = {"run": "a lesson", "compare": "measured", "errors": "a page", "explain": "your own script"}
    rows = [(f"tensorlens {text}", what[text.partition(" ")[0]]) for text in see_also(entry)]
    size = max(len(command) for command, _ in rows)
    return "See also\n\n" + "".join(f"    {command:<{size}}  {said}\n" for command, said in rows)


def _with_words(text: str) -> str:
    """Replaces the names of roles in the comments of a page's examples by words."""
    return re.sub(r"(?<=  # )\w+_here(?:, \w+_here)*$", _comment, text, flags=re.MULTILINE)


def _comment(found: re.Match[str]) -> str:
    return "; ".join(ROLE_NAMES[role] for role in found[0].split(", "))


def _plain(text: str, entry: Entry, width: int) -> str:
    """Removes the Markdown from a page: headings become lines of their own, examples are indented."""
    text = re.sub(r"^## Fails$", f"## {_FAILS[entry.kind]}", _with_words(text), flags=re.MULTILINE)
    text = re.sub(r"^## ", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^```python\n(.*?)^```$", lambda found: _example(found[1], width), text, flags=re.DOTALL | re.MULTILINE
    )


def _example(code: str, width: int) -> str:
    """Indents an example, and moves a comment that would make its line too wide to the line above."""
    lines: list[str] = []
    for line in textwrap.indent(code, "    ").rstrip("\n").split("\n"):
        statement, marked, comment = line.rpartition("  # ")
        if len(line) > width and marked:
            indent = " " * (len(statement) - len(statement.lstrip()))
            lines += [f"{indent}# {comment}", statement]
        else:
            lines.append(line)
    return "\n".join(lines)


def _wrapped(text: str, width: int) -> str:
    """Breaks the prose of a page into lines of `width`; the examples stay as they are."""
    return "\n\n".join(_filled(paragraph, width) for paragraph in text.split("\n\n"))


def _filled(paragraph: str, width: int) -> str:
    if paragraph.startswith(("    ", "\n    ")):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
