"""Names terms of a loss that are constants, and terms that lead to nothing that an optimizer steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensorlens.analysis.lineage import ancestry, graph_leaves
from tensorlens.analysis.plain_values import may_require_grad
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import ConstantTerm, constant_terms, history_lost_at, trained_by
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.number_terms import number_terms
from tensorlens.analysis.training.summed_terms import Loss, LossTerm, Term, losses, term_name
from tensorlens.diagnostics.shared.cut_facts import written
from tensorlens.diagnostics.shared.standing_out_text import listed, stands_out
from tensorlens.diagnostics.shared.wording import as_written, named
from tensorlens.records.model import Call
from tensorlens.records.report import StandingOut

_LEAVING = ("Tensor.__float__", "Tensor.tolist")


def find(training: MeasuredTraining) -> Iterator[StandingOut]:
    """Finds these terms, unless a finding of the report names them."""
    if training.training.is_hidden:
        return
    said = {each.added.site for each in _findings(training)}
    for loss in losses(training.facts):
        for term in loss.terms:
            last = term.terms[-1]
            if not term.requires_grad and last.added.site not in said:
                yield from _constant(training, loss, last)
            elif term.requires_grad and loss.reached & training.training.stepped:
                yield from _untrained(training, loss, term)
                yield from _unused(training, loss, term)
    for number in number_terms(training.training, _LEAVING):
        yield from _number(training, number)


def _findings(training: MeasuredTraining) -> Iterable[ConstantTerm]:
    """Returns what `loss-term-is-constant` reports."""
    if training.facts.trace.script.failure is not None:
        return ()
    return (*constant_terms(training.training), *number_terms(training.training))


def _name(facts: TraceIndex, term: Term) -> str:
    name, at = term_name(facts, term), term.added.index
    return named(facts, term.tensor, at) if name == facts.name(term.tensor, at) else f"`{name}`"


def _rows(training: MeasuredTraining, numbers: set[int]) -> list[ParameterRow]:
    return [row for row in training.rows if row.tensor in numbers]


# --- constants -------------------------------------------------------------------------------------------------------


def _constant(training: MeasuredTraining, loss: Loss, term: Term) -> Iterator[StandingOut]:
    """Yields the sentence about a term whose history is cut between parameters that its pass trains and the loss."""
    facts, used = training.facts, trained_by(training.training, term.backward)
    for call, source in history_lost_at(facts, term.tensor, term.added.index):
        rows = _rows(training, used & graph_leaves(facts, source, call.index))
        if rows and not _shares_values(facts, loss, term, (call, source)):
            name, cause = _name(facts, term), _cause(facts, call)
            what = f"the term {name} of the loss is a constant, although it is computed from {listed(rows)}"
            yield stands_out(
                f"{what}, which the run trains{'' if cause.startswith(name) else f': {cause}'}",
                facts.label("graph_cut_here", call.site, "the gradient stops here", call.index),
                facts.label("value_made_here", term.added.site, "added to the loss", term.added.index),
                facts.label("needed_here", loss.site, "backward"),
            )
            return


def _cause(facts: TraceIndex, call: Call) -> str:
    if call.mode != "grad":
        return f"gradients are off at {as_written(facts, call)}"
    return f"{written(facts, call)} has no history"


def _shares_values(facts: TraceIndex, loss: Loss, term: Term, cut: tuple[Call, int]) -> bool:
    """Returns whether the constant and another term of the loss were computed from each other.

    So it is in an estimate, `a + (b - a).detach()`, and in a sum that is shifted by its maximum.
    """
    call, source = cut
    pairs = [(each.tensor, each.added.index) for each in _others(loss, term)]
    outputs = {access.tensor for access in call.outputs}
    are_indices = not all(may_require_grad(facts.tensor(number)) for number in outputs)  # no estimate is made of these
    made = {term.tensor} if are_indices else {term.tensor, *outputs}
    if {number for number, _ in pairs} & {source, *_inputs(facts, source, call.index)}:
        return True
    computed = {(made_by.op, made_by.inputs) for _, made_by in ancestry(facts, source, call.index)}
    makers = (next(iter(facts.producers(number, before)), None) for number, before in pairs)
    if any(maker is not None and (maker.op, maker.inputs) in computed for maker in makers):
        return True
    return any(made & _inputs(facts, number, before) for number, before in pairs)


def _others(loss: Loss, term: Term) -> list[Term]:
    same = (each for group in loss.terms for each in group.terms if each.backward is term.backward)
    return [each for each in same if each.tensor != term.tensor]


def _inputs(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns the tensors that a tensor was computed from."""
    return {access.tensor for _, call in ancestry(facts, number, before) for access in call.inputs}


def _number(training: MeasuredTraining, number: ConstantTerm) -> Iterator[StandingOut]:
    """Yields the sentence about a term that is a plain number."""
    facts = training.facts
    rows = _rows(training, set(number.trained))
    if rows:
        what = f"the term {as_written(facts, number.cut)} of the loss is a plain number"
        source = named(facts, number.term, number.cut.index)
        yield stands_out(
            f"{what}, although {source} is computed from {listed(rows)}, which the run trains",
            facts.label("graph_cut_here", number.cut.site, "the gradient stops here", number.cut.index),
            facts.label("value_made_here", number.added.site, "added to the loss", number.added.index),
            facts.label("needed_here", number.backward.site, "backward"),
        )


# --- terms that train nothing ----------------------------------------------------------------------------------------


def _untrained(training: MeasuredTraining, loss: Loss, term: LossTerm) -> Iterator[StandingOut]:
    """Yields the sentence about a term that reaches only leaves that nothing updates."""
    facts, timeline = training.facts, training.training
    rows = _rows(training, set(term.reached))
    if not rows or len(rows) < len(term.reached) or term.reached & (timeline.stepped | timeline.gradient_read):
        return
    if any(timeline.is_updated(number) for number in term.reached):
        return
    last = term.terms[-1]
    what = f"the term {_name(facts, last)} of the loss"
    yield stands_out(
        f"{what} reaches only {listed(rows)}, which no optimizer steps",
        facts.label("value_made_here", term.site, "computed here"),
        facts.label("needed_here", loss.site, "backward"),
    )


def _unused(training: MeasuredTraining, loss: Loss, term: LossTerm) -> Iterator[StandingOut]:
    """Yields the sentence about a term that reaches only parameters of which no step uses the gradients of its passes,
    while other terms of the same passes train others."""
    facts, timeline = training.facts, training.training
    rows = _rows(training, set(term.reached))
    used = [trained_by(timeline, each.backward) for each in term.terms]
    if not rows or len(rows) < len(term.reached) or not all(used) or term.reached & timeline.gradient_read:
        return
    if not term.reached <= timeline.stepped or not all(_is_cleared(training, loss, row.tensor) for row in rows):
        return
    trained = _rows(training, set[int]().union(*used))
    yield stands_out(
        f"the term {_name(facts, term.terms[-1])} of the loss does not train {listed(trained)}: it reaches only "
        f"{listed(rows)}, whose gradients of these passes are cleared before a step uses them",
        facts.label("value_made_here", term.site, "computed here"),
        facts.label("needed_here", loss.site, "backward"),
    )


def _is_cleared(training: MeasuredTraining, loss: Loss, leaf: int) -> bool:
    """Returns whether each gradient that the passes of a loss gave a leaf is cleared before a step uses it."""
    moments = training.training.moments.get(leaf, ())
    fills = [place for place, moment in enumerate(moments) if moment.kind == "fill" and moment.event.site == loss.site]
    after = ([m.kind for m in moments[place + 1 :] if m.kind in ("clear", "update")][:1] for place in fills[:-1])
    last = [m.kind for m in moments[fills[-1] + 1 :]] if fills else []
    return len(fills) > 1 and all(kinds == ["clear"] for kinds in after) and "update" not in last
