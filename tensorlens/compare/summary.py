"""The closing paragraph of a comparison: what each operand does and when to use which, composed from the rows.

Nothing is known here of any operation; the words follow from what the probes measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorlens.compare.records import Input, Operand, Row, Value

SLOWER = 2.0  # times; nearer costs are no reason to choose
NAMED = 8  # differences named one by one; more are counted
MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """An answer to a probe that makes an operand the one to use, where not every operand gives it."""

    probe: str
    answer: Value
    when: str
    against: Value = None  # a reason only if another operand answers this; None: whatever the others answer


REASONS = (
    Reason("changes_source", True, "x itself is to change"),
    Reason("changes_source", False, "x is to stay as it is"),
    Reason("shares_storage", False, "the result needs memory of its own"),
    Reason("shares_storage", True, "no memory should be allocated"),
    Reason("gradient_reaches_source", True, "gradient is to flow back to x"),
    Reason("gradient_reaches_source", False, "the result is to be a constant for autograd"),
    Reason("write_result_then_backward", "fine", "the result may be written before backward"),
    Reason(
        "write_result_then_backward", "error", "a write that spoils backward should raise", against="silently wrong"
    ),
    Reason("use_in_graph", "fine", "the result goes into a graph later"),
    Reason("allowed_on_leaf_requiring_grad", True, "x may be a leaf that requires grad"),
)


class Facts:
    """The rows, by probe and operand."""

    def __init__(self, operands: Sequence[Operand], inputs: Sequence[Input], rows: Sequence[Row]) -> None:
        self.operands, self.inputs = operands, inputs
        self.rows = {row.probe: row for row in rows}

    def value(self, probe: str, operand: int, place: int = 0) -> Value:
        row = self.rows.get(probe)
        answer = row.answers(operand).get(place) if row else None
        return answer.value if answer else None

    def text(self, probe: str, operand: int) -> str:
        row = self.rows.get(probe)
        answer = row.answers(operand).get(0) if row else None
        return answer.text if answer else ""

    def places(self, operand: int) -> list[int]:
        """The inputs that the operand runs on."""
        row = self.rows.get("runs")
        return [place for place, answer in row.answers(operand).items() if answer.value is True] if row else []

    def names(self, places: Sequence[int]) -> str:
        return " or ".join(self.inputs[place].label for place in places)


def summarize(operands: Sequence[Operand], inputs: Sequence[Input], rows: Sequence[Row]) -> str:
    """What each operand does, when to use it and what to beware of, a line each; then what sets them apart."""
    facts = Facts(operands, inputs, rows)
    lines = []
    for operand in range(len(operands)):
        sentences = (_does(facts, operand), _use(facts, operand), _beware(facts, operand))
        lines.append(" ".join(filter(None, sentences)))
    lines.append(" ".join(filter(None, (_differences(rows), _cost(facts)))))
    return "\n".join(lines)


def _call(facts: Facts, operand: int) -> str:
    return f"`{facts.operands[operand].call}`"


def _does(facts: Facts, operand: int) -> str:
    """`x.view(-1)` gives a view of x and carries gradient to x."""
    places = facts.places(operand)
    if not places:
        return f"{_call(facts, operand)} runs on none of the inputs."
    parts = [_by_input(facts, places, lambda place: _memory(facts, operand, place))]
    graph = {
        True: "carries gradient to x",
        False: "cuts the graph: no gradient reaches x",
        "zeros": "gives x a gradient of zeros",
    }.get(facts.value("gradient_reaches_source", operand), "")
    changed = facts.value("changes_source", operand)
    parts += [f"changes x in place ({changed})"] if isinstance(changed, str) else []
    parts += [graph] if graph else []
    refused = [place for place in range(len(facts.inputs)) if facts.value("runs", operand, place) is False]
    if refused:
        few = len(refused) <= len(places)
        parts.append(f"is refused for {facts.names(refused)}" if few else f"runs only for {facts.names(places)}")
    return f"{_call(facts, operand)} {_listed(parts)}."


def _memory(facts: Facts, operand: int, place: int) -> str:
    if facts.value("same_object", operand, place):
        return "returns x itself"
    if facts.value("is_view", operand, place):
        return "gives a view of x"
    shared = facts.value("shares_storage", operand, place)
    if shared is None:
        return f"returns {facts.value('returns', operand, place)}"
    return "gives another tensor on x's memory" if shared else "gives new memory"


def _by_input(facts: Facts, places: Sequence[int], phrase: Callable[[int], str]) -> str:
    """What holds on the main input, then the inputs on which something else does."""
    groups: dict[str, list[int]] = {}
    for place in places:
        groups.setdefault(phrase(place), []).append(place)
    (first, _), *others = groups.items()
    return first + "".join(f" (but {text} for {facts.names(at)})" for text, at in others)


def _differences(rows: Sequence[Row]) -> str:
    apart = [row.label for row in rows if row.differs and row.group != "cost"]
    if not apart:
        return "No probe but the costs tells them apart on these inputs."
    if len(apart) > NAMED:
        return f"They differ in {len(apart)} of {sum(row.group != 'cost' for row in rows)} probes."
    return f"They differ in: {'; '.join(apart)}."


def _use(facts: Facts, operand: int) -> str:
    """Use it when the result needs memory of its own: the reasons that the fewest others share come first."""
    everyone = [other for other in range(len(facts.operands)) if facts.places(other)]
    found: list[tuple[int, str]] = []
    for reason in REASONS:
        takers = [other for other in everyone if _gives(facts, reason, other)]
        asked = reason.against is None or any(facts.value(reason.probe, o) == reason.against for o in everyone)
        if asked and operand in takers and len(takers) < len(everyone) and _comparable(facts, reason.probe, everyone):
            found.append((len(takers), reason.when))
    for place in facts.places(operand):
        takers = [other for other in everyone if place in facts.places(other)]
        if len(takers) < len(everyone) and facts.inputs[place].id != "leaf":
            found.append((len(takers), f"it has to work for {facts.names([place])}"))
    reasons = [when for _, when in sorted(found, key=lambda each: each[0])][:MOST_REASONS]
    return f"Use it when {_listed(reasons)}." if reasons else ""


def _gives(facts: Facts, reason: Reason, operand: int) -> bool:
    value = facts.value(reason.probe, operand)
    if isinstance(value, str) and reason.answer is True:
        return reason.probe == "changes_source"
    return value is not None and value == reason.answer


def _comparable(facts: Facts, probe: str, operands: Sequence[int]) -> bool:
    return all(facts.value(probe, operand) is not None for operand in operands)


def _beware(facts: Facts, operand: int) -> str:
    """Beware: a write to the result of `x.data` before backward is silent and gives gradient 0, where 1 is right."""
    for probe, what in (
        ("earlier_use_then_backward", "use x before {}"),
        ("write_result_then_backward", "write the result of {}"),
        ("write_source_then_backward", "write x after {}"),
    ):
        if facts.value(probe, operand) == "silently wrong":
            numbers = facts.text(probe, operand).removeprefix("silently wrong: ")
            return f"Beware: {what.format(_call(facts, operand))}, and backward is silently wrong ({numbers})."
    return ""


def _cost(facts: Facts) -> str:
    row = facts.rows.get("time_ratio")
    if row is None or not row.differs:
        return ""
    times = {operand: facts.value("time_ratio", operand) for operand in range(len(facts.operands))}
    known = {operand: ratio for operand, ratio in times.items() if isinstance(ratio, (int, float))}
    slow = {operand: ratio for operand, ratio in known.items() if ratio >= SLOWER}
    if not slow or len(known) < 2:
        return ""
    fastest = min(known, key=lambda operand: known[operand])
    told = [f"{_call(facts, operand)} takes {_times(ratio)} times" for operand, ratio in slow.items()]
    return f"On a large x {_listed(told)} as long as {_call(facts, fastest)}."


def _times(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
