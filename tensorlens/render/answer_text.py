"""Renders the answer to a question about one tensor: on one screen, as Markdown, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import isfinite
from typing import Any

from tensorlens.records.answer import Answer, AskedTensor, ListedTensor, Topic
from tensorlens.render import choose
from tensorlens.render.markdown_text import code, escaped, markdown_table, marked
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import safe, written

_GRADIENTS = {"none": "None", "zero": "zeros", "not finite": "infinite or NaN", "set": "set", "not kept": "not kept",
              "unknown": "not known"}  # fmt: skip
_TITLES: dict[Topic, str] = {
    "reason": "why", "writes": "written by", "memory": "shares memory", "holders": "references", "losses": "losses",
    "path": "path", "optimizer": "optimizer", "note": "not seen",
}  # fmt: skip
_MEMBER_HEADINGS = ("tensor", "kind", "requires\ngrad", ".grad", "last\nnorm", "optimizer", "moved")
_LONGEST = 60  # characters of a name


def render_answer(answer: Answer, form: str = "table", options: RenderOptions | None = None) -> str:
    """Renders an answer in one of the forms of `RENDERERS`, ending in a newline.

    Raises:
        UsageError: there is no such form.
    """
    return choose(RENDERERS, form)(answer, options or RenderOptions())


# --- the parts of every form ----------------------------------------------------------------------------------------


def _name(answer: Answer) -> str:
    name = " ".join(answer.asked.split())
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _heading(answer: Answer) -> list[str]:
    """Returns the script, the release of PyTorch, and the time that the answer is about."""
    where = [] if answer.at is None else [f"after the last recorded run of {answer.at.file}:{answer.at.line}"]
    return [answer.script, f"torch {answer.torch}", *where]


def _remarks(answer: Answer) -> Iterator[str]:
    if answer.called > 1:
        yield f"{answer.called} tensors were called so, one after the other; this is the last of them"
    if answer.ended:
        yield answer.ended


def _described(tensor: AskedTensor) -> Iterator[str]:
    """Yields what the tensor is, who made it, and its other names."""
    words = [tensor.type, f"{tensor.dtype}{list(tensor.shape)}"]
    words += [] if tensor.device == "cpu" else [tensor.device]
    if tensor.leaf is not None:
        words.append("leaf" if tensor.leaf else f"computed, grad_fn {tensor.grad_fn or 'not known'}")
    if tensor.requires_grad is not None:
        words.append("requires grad" if tensor.requires_grad else "requires no grad")
    words += [] if tensor.version is None else [f"version {tensor.version}"]
    if tensor.nbytes is not None:
        words.append(f"storage {f'{tensor.storage} ' if tensor.storage else ''}of {tensor.nbytes:,} bytes")
    yield ", ".join(words)
    if tensor.made is not None:
        yield tensor.made.text
    if len(tensor.names) > 1 and not tensor.alive:
        yield f"names: {', '.join(f'`{name}`' for name in tensor.names[:6])}"
    if tensor.alive is False:
        yield "it did not exist any more when the run ended"


def _gradient(tensor: AskedTensor) -> str:
    word = _GRADIENTS[tensor.gradient]
    if tensor.gradient_text is None:
        return word
    return tensor.gradient_text if tensor.gradient == "set" else f"{word}, {tensor.gradient_text}"


def _sections(answer: Answer) -> Iterator[tuple[str, list[str]]]:
    """Yields the title and the sentences of each section that has some."""
    tensor = answer.tensor
    assert tensor is not None
    by_topic: dict[Topic, list[str]] = {}
    for each in answer.statements:
        by_topic.setdefault(each.topic, []).append(each.text)
    described = "tensor", list(_described(tensor))
    gradient = ".grad", [_gradient(tensor), *by_topic.get("gradient", [])]
    yield from (described, gradient) if answer.about == "tensor" else (gradient,)
    for topic, title in _TITLES.items():
        texts = by_topic.get(topic, [])
        if topic == "writes" and answer.left_out:
            earlier = "1 earlier write" if answer.left_out == 1 else f"{answer.left_out} earlier writes"
            texts = [f"{earlier} (--writes lists all)", *texts]
        if texts:
            yield title, texts
    if answer.about == "gradient":
        yield described


def _members(answer: Answer) -> tuple[list[list[str]], list[str]]:
    """Returns the rows of a module's tensors, and the numbered reasons why some have no gradient."""
    reasons: dict[str, int] = {}
    rows = []
    holder = "".join(answer.asked.split())
    for each in answer.members:
        name = each.name.removeprefix(holder).removeprefix(".")
        norm = "" if each.norm is None else f"{each.norm:.3g}"
        gradient = _short_gradient(each, reasons)
        rows.append([name, each.kind, _yes_no(each.requires_grad), gradient, norm, each.optimizer, each.moved])
    return rows, [f"({number}) {reason}" for reason, number in reasons.items()]


def _yes_no(value: bool | None) -> str:
    return "?" if value is None else "yes" if value else "no"


def _short_gradient(each: ListedTensor, reasons: dict[str, int]) -> str:
    word = _GRADIENTS[each.gradient]
    if each.gradient in ("none", "not kept"):
        return f"{word} ({reasons.setdefault(each.reason, len(reasons) + 1)})" if each.reason else word
    return word


# --- forms ----------------------------------------------------------------------------------------------------------


def to_terminal(answer: Answer, options: RenderOptions) -> str:
    """Returns the answer as a table with one row for each section."""
    from rich.console import RenderableType
    from rich.text import Text

    from tensorlens.render.tables import Cell, HouseTable, printed

    head = Text.assemble((safe(_name(answer)), "heading"), "   ", safe("   ".join(_heading(answer))))
    parts: list[RenderableType] = [Cell(head), *(Cell(text) for text in _remarks(answer))]
    if answer.tensor is None:
        rows, reasons = _members(answer)
        table = HouseTable(_MEMBER_HEADINGS, ["name"], right=(4, 6))
        for row in rows:
            table.add(*row)
        return printed([*parts, table, *(Cell(reason, hang=4) for reason in reasons)], options.width, options.color)
    table = HouseTable(["", ""], ["name"])
    for title, texts in _sections(answer):
        table.add(title, Cell("\n".join(map(safe, texts)), hang=2))
    return printed([*parts, table], options.width, options.color)


def to_markdown(answer: Answer, options: RenderOptions) -> str:
    """Returns the answer as Markdown: a list for each section, or a table of a module's tensors."""
    lines = [f"# {code(_name(answer))}", "", escaped(", ".join(_heading(answer)))]
    for remark in _remarks(answer):
        lines += ["", marked(remark)]
    if answer.tensor is None:
        rows, reasons = _members(answer)
        cells = [(code(name), *map(escaped, others)) for name, *others in rows]
        lines += ["", *markdown_table([each.replace("\n", " ") for each in _MEMBER_HEADINGS], cells)]
        lines += ["", *(f"- {marked(reason)}" for reason in reasons)] if reasons else []
        return "\n".join(lines) + "\n"
    for title, texts in _sections(answer):
        lines += ["", f"**{escaped(title)}**", "", *(f"- {marked(text)}" for text in texts)]
    return "\n".join(lines) + "\n"


def to_json(answer: Answer, options: RenderOptions) -> str:
    """Returns one JSON object, as `docs/why.schema.json` describes it."""
    return written({"format": "tensorlens.answer", "version": 1, **_plain(asdict(answer))}, indent=2)


def _plain(data: Any) -> Any:
    """Returns data without numbers that JSON lacks: "nan", "inf" and "-inf" are strings."""
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return str(data) if isinstance(data, float) and not isfinite(data) else data


RENDERERS: dict[str, Callable[[Answer, RenderOptions], str]] = {
    "table": to_terminal,
    "markdown": to_markdown,
    "json": to_json,
}
