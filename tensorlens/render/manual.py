"""The manual as a person reads it: the index of codes, and pages as plain text or Markdown. Imports no rich."""

from __future__ import annotations

import re
import textwrap

from tensorlens.diagnostics import manual
from tensorlens.diagnostics.manual import Answer
from tensorlens.records.error_messages import Entry, entries

WIDTH = 80
_TIERS = {1: "Met every day, the most frequent first", 2: "Met now and then", 3: "Hardly ever met"}
_KINDS = {"error": "error", "warning": "warning", "silent": "silent mistake"}
_FAILS = {"error": "Fails", "warning": "Warns", "silent": "Goes wrong"}
_INDENT = " " * 11
_ROLES = {
    "accumulated_here": "the gradient is added here",
    "base_made_here": "the base is made here",
    "called_here": "called here",
    "cleared_here": "cleared here",
    "flag_changed_here": "the flag is changed here",
    "freed_here": "the graph is freed here",
    "function_defined_here": "the function is defined here",
    "grad_mode_off_here": "gradient recording is off here",
    "graph_built_here": "recorded here",
    "graph_cut_here": "the graph is cut here",
    "hook_registered_here": "the hook is registered here",
    "leaf_made_here": "the leaf is made here",
    "mode_entered_here": "the mode is entered here",
    "modified_here": "changed in place here",
    "needed_here": "needed here",
    "nonleaf_made_here": "computed here: not a leaf",
    "observed_here": "seen here",
    "optimizer_made_here": "the optimizer is made here",
    "rejected_here": "refused here",
    "replaced_here": "replaced here",
    "returned_here": "returned here",
    "saved_here": "saved for backward here",
    "shared_here": "memory is shared from here on",
    "state_changed_here": "the state is changed here",
    "value_made_here": "the value is made here",
    "view_made_here": "the view is made here",
}
"""What a line of an example does, in words; in the pages' sources the name of the role stands there, for the tests."""


def index(width: int = WIDTH, everything: bool = False) -> str:
    """The codes that are met every day, or all of them, with what each means."""
    ranked = sorted(manual.MOST_OFTEN, key=manual.MOST_OFTEN.index)
    lines: list[str] = []
    for tier, heading in _TIERS.items():
        if tier > 1 and not everything:
            break
        found = [entry for entry in entries() if entry.tier == tier]
        found.sort(key=lambda entry: (ranked.index(entry.code) if entry.code in ranked else len(ranked), entry.code))
        lines += [heading, "", *(line for entry in found for line in _listed(entry, width)), ""]
    rest = sum(entry.tier > 1 for entry in entries())
    if not everything:
        lines.append(_filled(f"{rest} more are met less often: tensorlens errors --all lists them too.", width))
    lines.append(_filled("tensorlens errors CODE shows a page; a pasted message or traceback finds its own.", width))
    return "\n".join(lines) + "\n"


def _listed(entry: Entry, width: int) -> list[str]:
    text = manual.summary(entry.code) or (f'"{entry.message}"' if entry.message else "")
    lines = textwrap.wrap(text, width - len(_INDENT), break_long_words=False)
    return [f"  {entry.kind:<8} {entry.code}", *(_INDENT + line for line in lines)]


def page_text(answer: Answer, width: int = WIDTH) -> str:
    """The answer as plain text: the remark, and pages one after the other."""
    remark = [_wrapped(answer.remark, width) + "\n"] if answer.remark else []
    return "\n".join([*remark, *(_titled(entry, width) for entry in answer.entries)])


def page_markdown(answer: Answer) -> str:
    """The same as Markdown."""
    remark = [f"{answer.remark}\n"] if answer.remark else []
    return "\n".join([*remark, *(f"# {entry.code}\n\n{markdown_body(entry)}" for entry in answer.entries)])


def markdown_body(entry: Entry) -> str:
    """A page below its title, as Markdown: PyTorch's words, the page, what else to read."""
    said = [f"> {entry.message}"] if entry.message else []
    see = ["## See also", "\n".join(f"- `tensorlens {text}`" for text in see_also(entry))]
    text = _spoken(manual.body(entry)).replace("## Fails", f"## {_FAILS[entry.kind]}")
    return "\n\n".join([*said, text, *see]) + "\n"


def see_also(entry: Entry) -> tuple[str, ...]:
    """The commands to go on with: lessons, comparisons, other pages, and the lens on the reader's own script."""
    return (*entry.see, "explain your_script.py")


def _titled(entry: Entry, width: int) -> str:
    raises = f", {entry.raises}" if entry.raises else ""
    header = f"{entry.code} ({_KINDS[entry.kind]}{raises})"
    said = ""
    if entry.message:
        quoted = textwrap.wrap(entry.message, width - 4, break_long_words=False, break_on_hyphens=False)
        said = "PyTorch says:\n\n" + "".join(f"    {line}\n" for line in quoted) + "\n"
    text = _wrapped(_plain(manual.body(entry), entry, width), width)
    return f"{header}\n{'-' * len(header)}\n\n{said}{text}\n\n{_see_text(entry)}"


def _see_text(entry: Entry) -> str:
    """The commands to go on with, each with what it gives."""
    what = {"run": "a lesson", "compare": "measured", "errors": "a page", "explain": "your own script"}
    rows = [(f"tensorlens {text}", what[text.partition(" ")[0]]) for text in see_also(entry)]
    size = max(len(command) for command, _ in rows)
    return "See also\n\n" + "".join(f"    {command:<{size}}  {said}\n" for command, said in rows)


def _spoken(text: str) -> str:
    """A page's examples with comments for readers in place of the names of roles."""
    return re.sub(r"(?<=  # )\w+_here(?:, \w+_here)*$", _comment, text, flags=re.MULTILINE)


def _comment(found: re.Match[str]) -> str:
    return "; ".join(_ROLES[role] for role in found[0].split(", "))


def _plain(text: str, entry: Entry, width: int) -> str:
    """A page without its Markdown: headings stand alone, examples are indented."""
    text = re.sub(r"^## Fails$", f"## {_FAILS[entry.kind]}", _spoken(text), flags=re.MULTILINE)
    text = re.sub(r"^## ", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^```python\n(.*?)^```$", lambda found: _example(found[1], width), text, flags=re.DOTALL | re.MULTILINE
    )


def _example(code: str, width: int) -> str:
    """An example, indented; a comment that would make its line too wide stands above it."""
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
    """A page with its prose broken to the width of a terminal; the examples stay as they are."""
    return "\n\n".join(_filled(paragraph, width) for paragraph in text.split("\n\n"))


def _filled(paragraph: str, width: int) -> str:
    if paragraph.startswith(("    ", "\n    ")):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)
