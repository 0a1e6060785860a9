"""The finder that many entries share: PyTorch refused, or warned, on the spot, and here is where what it refused came
from.

A file says which roles its cause has and how to put it; `refused` finds the line of each role from the facts of the
failing call: the leaf, the view, the non-leaf or the value among its tensors, and the call that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorlens.analysis.facts import Facts
from tensorlens.analysis.lineage import ancestry, find_cut, leaf_above
from tensorlens.analysis.names import shape_text
from tensorlens.diagnostics.cuts import cut_labels
from tensorlens.diagnostics.wording import finding, fix, named, op_text, severity_of
from tensorlens.messages import classify
from tensorlens.model import Access, Call, Diagnostic, Failure, Label, Notice, Severity


@dataclass(frozen=True, slots=True)
class Refusal:
    """A failing call or a warning, seen the same way."""

    facts: Facts
    index: int
    site: int | None
    op: str
    message: str
    inputs: tuple[Access, ...]
    severity: Severity

    def first(self, wanted: Callable[[int], bool]) -> int | None:
        """The first of the call's tensors for which `wanted` holds."""
        return next((a.tensor for a in self.inputs if wanted(a.tensor)), None)

    def is_leaf(self, number: int) -> bool:
        state = self.facts.state(number, self.index)
        return state is not None and state.requires_grad and state.is_leaf

    def is_nonleaf(self, number: int) -> bool:
        state = self.facts.state(number, self.index)
        return state is not None and state.requires_grad and not state.is_leaf

    def is_view(self, number: int) -> bool:
        return self.facts.tensor(number).base is not None

    def name(self, number: int | None) -> str:
        return named(self.facts, number, self.index)


@dataclass(frozen=True, slots=True)
class Spot:
    """The tensor that plays a role, and the site of the line where it came to play it."""

    tensor: int | None
    site: int | None
    text: str


def leaf(refusal: Refusal) -> Spot | None:
    """The leaf that requires grad among the call's tensors or under them as a base; else the nearest above them."""
    facts = refusal.facts
    under = [(a.tensor, facts.tensor(a.tensor).base) for a in refusal.inputs]
    found = [n for pair in under for n in pair if n is not None and refusal.is_leaf(n)]
    if not found:
        above = (leaf_above(facts, number, refusal.index) for number, _ in under)
        found = [number for number in above if number is not None]
    if not found:
        return None
    site = _birth_of_leaf(facts, found[0], refusal.index)
    return Spot(found[0], site, f"{refusal.name(found[0])} is a leaf that requires grad")


def _birth_of_leaf(facts: Facts, number: int, before: int) -> int | None:
    """The line where a tensor became a leaf that requires grad: where it was made, or switched on later."""
    for call in facts.calls:
        if call.index >= before:
            break
        state = next((s for s in call.states if s.tensor == number), None)
        if state is not None and state.requires_grad:
            return call.site
    use = facts.first_use(number)
    return None if use is None else use.site


def nonleaf(refusal: Refusal) -> Spot | None:
    number = refusal.first(refusal.is_nonleaf)
    made = None if number is None else next(iter(refusal.facts.producers(number, refusal.index)), None)
    if number is None or made is None:
        return None
    state = refusal.facts.state(number, refusal.index)
    by = f" by `{state.grad_fn}`" if state is not None and state.grad_fn else ""
    return Spot(number, made.site, f"{refusal.name(number)} is computed here{by}: not a leaf")


def view(refusal: Refusal) -> Spot | None:
    """The view among the call's tensors; of a chain of views, the one that was made without recording."""
    number = next(iter(_views(refusal)), None)
    if number is None:
        return Spot(None, refusal.site, "a view is made here")
    made = _handed_out(refusal.facts, number) or refusal.facts.maker(number)
    text = f"{refusal.name(number)} is a view of {refusal.name(refusal.facts.tensor(number).base)}"
    return Spot(number, None if made is None else made.site, text)


def _views(refusal: Refusal) -> list[int]:
    """The first view among the call's tensors and the views that it was taken from; those made without recording
    first."""
    chain: list[int] = []
    number = refusal.first(refusal.is_view)
    while number is not None and number not in chain:
        chain.append(number)
        made = refusal.facts.maker(number)
        sources = () if made is None else made.inputs
        number = next((a.tensor for a in sources if refusal.is_view(a.tensor)), None)
    return sorted(chain, key=lambda n: (m := refusal.facts.maker(n)) is None or m.mode == "grad")


def _handed_out(facts: Facts, number: int) -> Call | None:
    """The custom Function that returned a tensor made inside it."""
    returning = (c for c in facts.calls if c.op.endswith(".apply") and any(a.tensor == number for a in c.outputs))
    return next(returning, None)


def modified(refusal: Refusal) -> Spot | None:
    """The refused change itself, or, where a later use is refused, the last change of the memory before it."""
    name = refusal.op.rpartition(".")[2]
    if (name.endswith("_") and not name.endswith("__")) or name in ("__setitem__", "") or not refusal.inputs:
        return spot(refusal)
    counter = refusal.facts.tensor(refusal.inputs[0].tensor).counter
    changes = [(event, write) for event, write in refusal.facts.writes(counter) if event.index < refusal.index]
    if not changes:
        return spot(refusal)
    event, write = changes[-1]
    return Spot(write.tensor, event.site, f"{refusal.name(write.tensor)} is changed in place here")


def base(refusal: Refusal) -> Spot | None:
    number = refusal.first(refusal.is_view)
    owner = None if number is None else refusal.facts.tensor(number).base
    use = None if owner is None else refusal.facts.first_use(owner)
    return None if use is None else Spot(owner, use.site, f"{refusal.name(owner)} owns the memory")


def value(refusal: Refusal, position: int = -1) -> Spot | None:
    """One of the call's tensors: by default the last, the one that is handed to the first."""
    if not refusal.inputs:
        return None
    number = refusal.inputs[position].tensor
    producers = refusal.facts.producers(number, refusal.index)
    use = producers[0] if producers else refusal.facts.first_use(number)
    tensor = refusal.facts.tensor(number)
    text = f"{refusal.name(number)} is made here: shape {shape_text(tensor)}, {tensor.dtype}"
    return Spot(number, None if use is None else use.site, text)


def first_value(refusal: Refusal) -> Spot | None:
    """The call's first tensor: what backward was started from."""
    return value(refusal, 0)


def graph(refusal: Refusal) -> Spot | None:
    """The last recorded operation that went into the call's first tensor."""
    for access in refusal.inputs:
        for number, call in ancestry(refusal.facts, access.tensor, refusal.index):
            if call.nodes[1] > call.nodes[0]:
                state = refusal.facts.state(number, call.index)
                by = f" by `{state.grad_fn}`" if state is not None and state.grad_fn else ""
                return Spot(number, call.site, f"{refusal.name(number)} is recorded here{by}")
    return None


def mode(refusal: Refusal) -> Spot | None:
    """The switch under which the refused call ran, or under which one of its tensors was made."""
    switch = refusal.facts.mode_switch(refusal.index)
    for number in [*_views(refusal), *(access.tensor for access in refusal.inputs)]:
        made = refusal.facts.first_use(number)
        if switch is None and made is not None and made.mode != "grad":
            switch = refusal.facts.mode_switch(made.index)
    return None if switch is None else Spot(None, switch.site, f"`{switch.cause}` begins here")


def spot(refusal: Refusal) -> Spot | None:
    return Spot(None, refusal.site, f"{op_text(refusal.op)} is refused" if refusal.op else "refused here")


def needed(refusal: Refusal) -> Spot | None:
    return Spot(None, refusal.site, f"{op_text(refusal.op)} needs it here" if refusal.op else "needed here")


ROLES: dict[str, Callable[[Refusal], Spot | None]] = {
    "leaf_made_here": leaf,
    "nonleaf_made_here": nonleaf,
    "view_made_here": view,
    "base_made_here": base,
    "value_made_here": value,
    "value_made_here:first": first_value,
    "graph_built_here": graph,
    "mode_entered_here": mode,
    "grad_mode_off_here": mode,
    "rejected_here": spot,
    "modified_here": modified,
    "optimizer_made_here": spot,
    "needed_here": needed,
    "observed_here": needed,
}


def refused(
    code: str, roles: tuple[str, ...], title: str, why: str, *fixes: str
) -> Callable[[Facts], Iterator[Diagnostic]]:
    """A `find` for `code`. The first role's line is the primary one. `title`, `why` and the fixes are templates with
    the fields {op} and, for each role, its tensor: {leaf}, {nonleaf}, {view}, {base}, {value}, {graph}."""

    def find(facts: Facts) -> Iterator[Diagnostic]:
        for refusal in refusals(facts, code):
            yield tell(refusal, code, roles, (title, why, fixes))

    return find


def tell(refusal: Refusal, code: str, roles: tuple[str, ...], words: tuple[str, str, tuple[str, ...]]) -> Diagnostic:
    """The diagnostic of one refusal."""
    facts = refusal.facts
    title, why, fixes = words
    fields = {"op": op_text(refusal.op) if refusal.op else "this"}
    labels: list[Label | None] = []
    for role in roles:
        if role == "graph_cut_here":
            labels += _cut(refusal)
            continue
        found = ROLES[role](refusal)
        if found is not None:
            labels.append(facts.label(role.partition(":")[0], found.site, found.text))
            if role == "modified_here" and found.site != refusal.site:
                labels.append(facts.label("needed_here", refusal.site, f"{op_text(refusal.op)} needs it afterwards"))
            fields[role.split("_")[0]] = refusal.name(found.tensor)
    known = _Fields(fields)
    return finding(
        code,
        refusal.severity,
        known.fill(title),
        known.fill(why),
        labels,
        fixes=tuple(fix(known.fill(text)) for text in fixes),
        evidence={"op": refusal.op, "message": refusal.message},
    )


def _cut(refusal: Refusal) -> list[Label | None]:
    """The cut above the call's first tensor and the switch behind it, or the call itself if it takes a value out."""
    facts, site = refusal.facts, refusal.site
    if not refusal.inputs:
        return []
    number = refusal.inputs[0].tensor
    if facts.requires_grad(number, refusal.index):
        text = f"{op_text(refusal.op)} takes the value of {refusal.name(number)} out of the graph"
        return [facts.label("graph_cut_here", site, text)]
    labels = list(cut_labels(facts, find_cut(facts, number, refusal.index)))
    if labels:
        return [label for label in labels if label is not None and label.role != "leaf_made_here"]
    use = facts.first_use(number)
    text = f"{refusal.name(number)} is made here and does not require grad"
    return [None if use is None else facts.label("graph_cut_here", use.site, text)]


class _Fields(dict[str, str]):
    """Template fields; one whose tensor was not found reads "the tensor"."""

    def __missing__(self, key: str) -> str:
        return "the tensor"

    def fill(self, template: str) -> str:
        """The template with its fields; "{leaf}`.clone()`" becomes one piece of code, "`weight.clone()`"."""
        return template.format_map(self).replace("``", "")


def refusals(facts: Facts, code: str) -> Iterator[Refusal]:
    """The failures and the warnings of a code; a warning repeated at the same line counts once."""
    for failure in facts.failures(code):
        yield _of_failure(facts, failure)
    seen: set[int | None] = set()
    for notice in facts.notices():
        if notice.site not in seen and classify(notice.message) == code:
            seen.add(notice.site)
            yield _of_notice(facts, notice)


def _of_failure(facts: Facts, failure: Failure) -> Refusal:
    inputs, op = failure.inputs, failure.op or ""
    return Refusal(facts, failure.index, failure.site, op, failure.message, inputs, severity_of(failure))


def _of_notice(facts: Facts, notice: Notice) -> Refusal:
    """A warning is emitted during a call, whose row follows at the same site."""
    call = next((e for e in facts.calls if e.index > notice.index and e.site == notice.site), None)
    inputs = () if call is None else call.inputs
    op = "" if call is None else call.op
    return Refusal(facts, notice.index, notice.site, op, notice.message, inputs, "warning")
