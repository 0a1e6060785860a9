"""Defines a rejected call, and the lines that explain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorlens.analysis.naming.code_text import change_text
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.wording import named, op_text, source_text
from tensorlens.records.failure_context import Value
from tensorlens.records.model import Access, Failure, Span
from tensorlens.records.report import Severity


@dataclass(frozen=True, slots=True)
class RejectedCall:
    """A call that failed or that emitted a warning: finders treat both alike."""

    facts: TraceIndex
    index: int
    site: int | None
    op: str
    message: str
    inputs: tuple[Access, ...]
    severity: Severity
    raised: int | None = None  # the user's line that raised inside the call, as in a hook or a `backward`
    failure: Failure | None = None  # None: a warning
    values: tuple[Value, ...] = ()  # the plain values that the rejected expression reads

    def is_of_own_code(self) -> bool:
        """Returns whether the line itself made the call, not a library's function that it called."""
        return self.site is None or not self.facts.trace.sites[self.site].through

    def first(self, wanted: Callable[[int], bool]) -> int | None:
        """Finds the first of the call's tensors for which `wanted` holds."""
        return next((a.tensor for a in self.inputs if wanted(a.tensor)), None)

    def is_leaf(self, number: int) -> bool:
        state = self.facts.state(number, self.index)
        return state is not None and state.requires_grad and state.is_leaf

    def is_nonleaf(self, number: int) -> bool:
        state = self.facts.state(number, self.index)
        return state is not None and state.requires_grad and not state.is_leaf

    def is_view(self, number: int) -> bool:
        return self.facts.tensor(number).base is not None

    def is_backward(self) -> bool:
        return self.op in ("Tensor.backward", "autograd.backward", "autograd.grad")

    def is_inplace(self) -> bool:
        """Returns whether the op changes its first tensor, by torch's naming: `add_`, an item assignment."""
        name = self.op.rpartition(".")[2]
        return (name.endswith("_") and not name.endswith("__")) or name == "__setitem__" or name.startswith("__i")

    def has_no_history_to_lose(self) -> bool:
        """Returns whether autograd recorded nothing that a copy by the calls of this line could drop."""
        facts = self.facts
        calls = [call for call in facts.calls if call.site == self.site and call.op == self.op]
        return bool(calls) and all(
            call.mode != "grad" or not any(facts.requires_grad(each.tensor, call.index - 1) for each in call.inputs)
            for call in calls
        )

    def stands_alone(self) -> bool:
        """Returns whether no failure follows a warning at the same line: then the warning is not just part of the
        failure."""
        return not any(f.site == self.site and f.index == self.index + 1 for f in self.facts.trace.failures)

    def written(self) -> str:
        """Returns the call as the script writes it: "`p -= ...`", "`c.zero_()`"; else its op."""
        span = self.facts.span(self.site)
        node = None if span is None else self.facts.names.syntax.node(span)
        text = change_text(node) or source_text(self.facts, self.site)
        return f"`{text}`" if text else op_text(self.op) if self.op else "this line"

    def name(self, number: int | None) -> str:
        return named(self.facts, number, self.index)


@dataclass(frozen=True, slots=True)
class LabelledSite:
    """A line that plays a role in a cause: its site, its tensor and the text of its label."""

    tensor: int | None
    site: int | None
    text: str
    span: Span | None = None  # the place, if no call was recorded there
