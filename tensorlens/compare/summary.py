"""Writes the closing paragraph of a comparison: a sentence or two about each operand.

The sentences follow from the measured rows alone. This module knows nothing about any operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensorlens.compare.comparison_records import Answer, Input, Operand, Row, Value
from tensorlens.compare.input_conditions import conditions

SAME_NUMBERS = "those of x"


class Answers:
    """Looks up answers by probe, operand and input."""

    def __init__(self, operands: Sequence[Operand], inputs: Sequence[Input], rows: Sequence[Row]) -> None:
        self.operands, self.inputs = operands, inputs
        self._answers = {(row.probe, each.operand, each.input): each.answer for row in rows for each in row.evidence}

    def answer(self, probe: str, operand: int, place: int = 0) -> Answer | None:
        return self._answers.get((probe, operand, place))

    def value(self, probe: str, operand: int, place: int = 0) -> Value:
        answer = self.answer(probe, operand, place)
        return answer.value if answer else None

    def text(self, probe: str, operand: int, place: int = 0) -> str:
        answer = self.answer(probe, operand, place)
        return answer.text if answer else ""

    def places(self, operand: int) -> list[int]:
        """Returns the inputs that the operand runs on, the main one first."""
        return [place for place in range(len(self.inputs)) if self.value("runs", operand, place) is True]


def summarize(operands: Sequence[Operand], inputs: Sequence[Input], rows: Sequence[Row]) -> str:
    """Writes a line per operand, with its result and its dangers. A last line says which costs grow with x, or that
    nothing differs."""
    answers = Answers(operands, inputs, rows)
    lines = [_about(answers, operand) for operand in range(len(operands))]
    last = " ".join(filter(None, (_nothing_differs(rows), _costs(answers))))
    return "\n".join([*lines, *([last] if last else [])])


def _about(answers: Answers, operand: int) -> str:
    places = answers.places(operand)
    if not places:
        return f"{_call(answers, operand)} runs on none of the inputs."
    gives = _by_input(answers, places, lambda place: _gives(answers, operand, place))
    graph = _by_input(answers, _in_graph(answers, places), lambda place: _graph(answers, operand, place))
    if graph and not answers.inputs[0].requires_grad:
        graph = f"for an x that requires grad, {graph}"
    sentences = (
        f"{_call(answers, operand)} {gives}{'; ' if graph else ''}{graph}.",
        _write(answers, operand),
        _inputs_that_fail(answers, operand),
        _unusable(answers, operand),
        "It emits a warning." if answers.value("warns", operand) else "",
        _beware(answers, operand),
    )
    return " ".join(filter(None, sentences))


def _call(answers: Answers, operand: int) -> str:
    return f"`{answers.operands[operand].call}`"


def _gives(answers: Answers, operand: int, place: int) -> str:
    """Returns `changes x in place`, `gives a view of x`, `gives a copy of x`."""
    parts = []
    changed, filled = answers.value("changes_source", operand, place), answers.value("fills_grad", operand, place)
    changes = changed.split(", ") if isinstance(changed, str) else []
    if isinstance(filled, str):
        changes = [name for name in changes if name != ".grad"]
        names, _, recorded = filled.partition("; ")
        which = ", which then requires grad," if recorded else ""
        parts.append(f"fills .grad of {names.replace(', ', ' and ')}{which}")
    if changes:
        parts.insert(0, _changes(changes))
    elif place and not parts and isinstance(answers.value("changes_source", operand), str):
        parts.append("leaves x as it is")
    if answers.value("same_object", operand, place) and any(part.startswith("writes") for part in parts):
        return " and ".join(parts)
    return " and ".join([*parts, _object(answers, operand, place)])


SAME_WRITTEN, FORM = "written with the same values", ("shape", "strides", "memory", "dtype")


def _changes(changed: list[str]) -> str:
    if changed == ["hooks"]:
        return "registers a hook on x"
    form = [name for name in changed if name in FORM]
    if "values" in changed and not form:
        return "writes x in place"
    if SAME_WRITTEN in changed and not form:
        return "writes x in place, the same values"
    changed = [name for name in changed if name != SAME_WRITTEN]
    return f"changes {_listed([f'x{name}' if name.startswith('.') else f'x.{name}' for name in changed])}"


def _object(answers: Answers, operand: int, place: int) -> str:
    returned = str(answers.value("returns", operand, place))
    shared = answers.value("shares_storage", operand, place)
    if returned == "None":
        return "returns None"
    if answers.value("same_object", operand, place):
        return "returns x itself"
    if answers.value("requires_grad", operand, place) is None:
        on = "" if shared is None else " on x's memory" if shared else " with memory of its own"
        return f"gives {_article(returned)}{on}"
    several = returned.startswith(("tuple", "list"))
    first = f"gives a {returned}, the first " if several else "gives "
    if answers.value("is_view", operand, place):
        return f"{first}a view of x"
    if shared:
        return f"{first}{_article(returned) if returned == 'Parameter' else 'another tensor'} on x's memory"
    return first + ("new memory" if answers.value("shares_storage", operand) else _new(answers, operand))


def _new(answers: Answers, operand: int) -> str:
    values, shape = answers.text("values", operand), answers.text("result_shape", operand)
    if values.startswith("not set"):
        return "a new tensor whose numbers are not set"
    if values.startswith("random"):
        return "a new tensor that depends on random numbers"
    if not shape.endswith("as x"):
        return f"a new tensor of shape {shape.partition(' each')[0]}" if shape.count("(") == 1 else "a new tensor"
    if not values.startswith(SAME_NUMBERS):
        return "a new tensor"
    dtype = answers.text("result_dtype", operand)
    return "a copy of x" if dtype.endswith("as x") else f"a copy of x in {dtype}"


def _in_graph(answers: Answers, places: Sequence[int]) -> list[int]:
    return [place for place in places if answers.inputs[place].requires_grad]


def _graph(answers: Answers, operand: int, place: int) -> str:
    """Says where the gradient of the result goes. A result that requires grad is never called a constant."""
    reaches = answers.value("gradient_reaches_source", operand, place)
    to_y = answers.value("gradient_reaches_y", operand) is True
    if answers.value("requires_grad", operand, place) is None:
        returned = answers.value("returns", operand, place)
        return "" if returned == "None" else "no gradient reaches x through it"
    if reaches == "error":
        return "backward through it raises"
    if reaches is True:
        unchanged = " unchanged" if answers.value("gradient_is_identity", operand, place) is True else ""
        return f"gradient flows back to x{' and y' if to_y else unchanged}"
    if answers.value("trains", operand, place) is True:
        return "the result is a new leaf: its gradient stays in the result"
    if to_y:
        return "it carries gradient to y" + (", and zeros to x" if reaches == "zeros" else ", none to x")
    if reaches == "zeros":
        return "x gets a gradient of zeros"
    if answers.value("requires_grad", operand, place) is True:
        return "it requires grad, but no gradient reaches x"
    return "it is a constant for autograd: no gradient reaches x"


def _write(answers: Answers, operand: int) -> str:
    """Says whether a user may write to the result; "" if it is x itself, or if there is nothing to say."""
    written = answers.value("write_result_then_backward", operand)
    unusable = (
        answers.value("use_in_graph", operand) == "error"
        or answers.value("gradient_reaches_source", operand) == "error"
    )
    if answers.value("same_object", operand) or written is None or (unusable and written == "error"):
        return ""
    if written == "fine":
        places = answers.places(operand)
        wrong = [
            each for each in places if answers.value("write_result_then_backward", operand, each) not in ("fine", None)
        ]
        but = f", but not for {conditions(answers.inputs, wrong, places)}" if wrong else ""
        return f"You may write to the result before backward{but}."
    if written == "write refused":
        return "Writing to the result in place raises an error."
    if written == "error" and answers.value("shares_storage", operand):
        return "A write to the result is a write to x: backward raises if it needs the old values."
    return "A write to the result makes backward raise." if written == "error" else ""


def _inputs_that_fail(answers: Answers, operand: int) -> str:
    places = answers.places(operand)
    failing = [place for place in range(len(answers.inputs)) if answers.value("runs", operand, place) is False]
    if not failing:
        return ""
    everywhere = range(len(answers.inputs))
    if len(failing) <= len(places) or _short(conditions(answers.inputs, failing, everywhere)):
        return f"It raises an error for {conditions(answers.inputs, failing, everywhere)}."
    return f"It runs only for {conditions(answers.inputs, places, everywhere)}."


def _short(words: str) -> bool:
    return ", or " not in words


def _unusable(answers: Answers, operand: int) -> str:
    if (
        answers.value("use_in_graph", operand) != "error"
        or answers.value("gradient_reaches_source", operand) == "error"
    ):
        return ""
    return "The result can't be used in a graph later."


def _beware(answers: Answers, operand: int) -> str:
    """Warns of wrong gradients: `Beware: write the result of `x.data`, and backward is silently wrong (...)`."""
    for probe, what in (
        ("earlier_use_then_backward", "use x before {}"),
        ("write_result_then_backward", "write the result of {}"),
        ("write_source_then_backward", "write x after {}"),
    ):
        if answers.value(probe, operand) == "silently wrong":
            numbers = answers.text(probe, operand).removeprefix("silently wrong: ")
            return f"Beware: {what.format(_call(answers, operand))}, and backward is silently wrong ({numbers})."
    return ""


def _by_input(answers: Answers, places: Sequence[int], phrase: Callable[[int], str]) -> str:
    """Returns the phrase for the first input, then, in brackets, other phrases with the inputs that they are for."""
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(phrase(place), []).append(place)
    if not groups or "" in list(groups)[:1]:
        return ""
    (first, _), *others = groups.items()
    differing = [(text, at) for text, at in others if text and text != f"{first} unchanged"]
    but = "; ".join(f"{text} for {conditions(answers.inputs, at, places)}" for text, at in differing)
    return f"{first} (but {but})" if but else first


def _nothing_differs(rows: Sequence[Row]) -> str:
    if any(row.differs for row in rows if row.group != "cost"):
        return ""
    return "No measurement distinguishes them, except time and memory."


def _costs(answers: Answers) -> str:
    """Says which costs grow with x, if the operands differ in that."""
    kinds: dict[str, list[str]] = {}
    for operand in range(len(answers.operands)):
        grows = answers.value("cost_grows", operand)
        if isinstance(grows, str):
            kinds.setdefault(grows, []).append(_call(answers, operand))
    if len(kinds) < 2:
        return ""
    parts = []
    for grows, calls in kinds.items():
        verb = "take" if len(calls) > 1 else "takes"
        if grows == "no":
            parts.append(f"{_listed(calls)} {verb} hardly more time and memory for a large x than for a small one")
        else:
            parts.append(f"the {grows} of {_listed(calls)} {'grow' if ' and ' in grows else 'grows'} with x")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeioun' and noun != 'numpy' else 'a'} {noun}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
