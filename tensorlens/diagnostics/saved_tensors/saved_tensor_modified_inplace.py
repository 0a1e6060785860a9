"""Finds the cause of `saved-tensor-modified-inplace`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensorlens.analysis.facts import TraceIndex
from tensorlens.analysis.naming.names import callers
from tensorlens.diagnostics.shared.wording import count_text, finding, fix, named, op_text, severity_of, source_text
from tensorlens.records.model import Access, Backward, Call, Diagnostic, Failure, Fix, Label, SavedTensor, Write

_OTHERS = 3
_ONLY_IN_PLACE = (
    *("copy_", "fill_", "fill_diagonal_", "set_", "zero_", "apply_", "map_", "random_"),
    *("normal_", "log_normal_", "uniform_", "cauchy_", "exponential_", "geometric_"),
)  # methods that have no counterpart which makes a new tensor
CODE = "saved-tensor-modified-inplace"


def find(facts: TraceIndex) -> Iterator[Diagnostic]:
    for failure in facts.failures(CODE):
        yield explain(facts, failure)


def explain(facts: TraceIndex, failure: Failure) -> Diagnostic:
    """Reports the saved tensor that PyTorch raised on; the others that fail the check become notes."""
    stale = [saved for saved in failure.saved if saved.problem == "version"]
    story = _Story(facts, failure, stale[0] if stale else None)
    return finding(
        CODE,
        severity_of(failure),
        story.title(),
        story.explanation(),
        story.labels(),
        notes=(*story.notes(), *_others(facts, failure, stale[1:])),
        fixes=story.fixes(),
        evidence=story.evidence(),
    )


class _Story:
    """The call that saved the tensor, the alias through which it was changed, and the call that changed it."""

    def __init__(self, facts: TraceIndex, failure: Failure, saved: SavedTensor | None) -> None:
        self.facts, self.failure, self.saved = facts, failure, saved
        self.by: Call | None = None
        self.access: Access | None = None
        self.changes: list[tuple[Call | Backward, Write]] = []
        if saved is None:
            return
        node_call = facts.call_of_node(saved.sequence, failure.index)
        if node_call is not None:
            self.access = facts.saved(saved, node_call)
            self.by = _inner_save(facts, node_call, saved) or node_call
        elif not saved.node:
            self.by, self.access = _by_versions(facts, saved, failure.index)
        if self.access is not None and saved.expected is not None:
            counter = facts.tensor(self.access.tensor).counter
            self.changes = [
                (event, write)
                for event, write in facts.writes(counter)
                if write.after > saved.expected and (self.by is None or event.index >= self.by.index)
                and event.index < failure.index
            ]  # fmt: skip

    @property
    def tensor(self) -> str:
        at = self.by.index if self.by is not None else None
        return "a tensor" if self.access is None else named(self.facts, self.access.tensor, at)

    @property
    def _saved_tensor(self) -> int | None:
        return None if self.access is None else self.access.tensor

    def title(self) -> str:
        return f"{self.tensor} was changed in place after autograd saved it"

    def explanation(self) -> str:
        if self.saved is None:
            return "backward found a saved tensor at a version that is not the saved one; the graph could not be read"
        what = "its result" if self.saved.slot.startswith(("result", "output")) else f"{self.tensor}"
        node = f"`{self.saved.node}`" if self.saved.node else "the backward pass"
        return (
            f"{node} computes its gradient from {what} at version {self.saved.expected}; what is there "
            f"now is version {self.saved.found}, so the gradient would be wrong"
        )

    def labels(self) -> Iterator[Label | None]:
        facts, saved = self.facts, self.saved
        if self.changes:
            event, write = self.changes[0]
            yield facts.label("modified_here", event.site, self._change_text(event, write))
            yield self._alias(write)
        if self.by is not None and saved is not None:
            what = "its result" if saved.slot.startswith(("result", "output")) else self.tensor
            node = f"`{saved.node}`" if saved.node else "autograd"
            text = f"{node} saved {what} here, at version {saved.expected}{count_text(facts, self.by)}"
            yield facts.label("saved_here", self.by.site, text)
        needs = "" if saved is None else f" needs version {saved.expected} and finds version {saved.found}"
        yield facts.label("needed_here", self.failure.site, f"backward{needs}")

    def _change_text(self, event: Call | Backward, write: Write) -> str:
        within = f" by `{event.within}()`" if isinstance(event, Call) and event.within else ""
        again = count_text(self.facts, event) if isinstance(event, Call) and not within else ""
        return f"changed in place here{within}: version {write.before} -> {write.after}{again}"

    def _alias(self, write: Write) -> Label | None:
        """Labels the line that made the written tensor share memory with the saved one, if they are two tensors."""
        if self.access is None or write.tensor == self.access.tensor:
            return None
        for number in (write.tensor, self.access.tensor):
            made = self.facts.maker(number)
            shares = made is not None and any(self._same_memory(access.tensor, number) for access in made.inputs)
            if made is None or not shares or made.site == self.changes[0][0].site:
                continue
            is_view = self.facts.tensor(number).base is not None
            source = next(a.tensor for a in made.inputs if self._same_memory(a.tensor, number))
            before = self.facts.maker(source)
            if before is not None and before.site == made.site and not self.facts.names.is_named(source):
                continue  # both were made inside the call on that line
            text = f"{named(self.facts, number, made.index)} shares memory with {named(self.facts, source, made.index)}"
            return self.facts.label("view_made_here" if is_view else "shared_here", made.site, text)
        return None

    def _same_memory(self, one: int, other: int) -> bool:
        first, second = self.facts.tensor(one), self.facts.tensor(other)
        return first.storage is not None and first.storage == second.storage

    def notes(self) -> Iterator[str]:
        if self.saved is not None and not self.changes:
            yield "the call that changed it was not seen (see the gaps below)"
        more = [event for event, _ in self.changes[1:] if event.site != self.changes[0][0].site]
        spans = [span for event in more[:3] if (span := self.facts.span(event.site)) is not None]
        if spans:
            lines = ", ".join(dict.fromkeys(str(span.line) for span in spans))
            yield f"it was changed again on line {lines}"

    def fixes(self) -> tuple[Fix, ...]:
        if not self.changes:
            return (fix("keep what backward needs: change a copy made with `clone()`"),)
        event, write = self.changes[0]
        if isinstance(event, Backward):
            return (fix("use the gradient before the next backward accumulates into it, or `clone()` it first"),)
        if event.within:
            step = f"`{source_text(self.facts, event.site)}`"
            return (
                fix(f"call {step} after the last backward that needs the old parameters"),
                fix(f"or run the forward pass again after {step}: its graph is made from the new values"),
            )
        return tuple(self._local_fixes(event, write))

    def _local_fixes(self, event: Call, write: Write) -> Iterator[Fix]:
        written = named(self.facts, write.tensor, event.index)
        alias = self.access is not None and write.tensor != self.access.tensor
        made = self.facts.maker(write.tensor)
        name = event.op.rpartition(".")[2]
        item = name == "__setitem__"
        in_place = item or (self._direct(event) and name.endswith("_"))
        trained = [n for n in (write.tensor, self._saved_tensor) if n is not None and self._is_trained(n, event.index)]
        if alias and made is not None and self._direct(made) and self._is_alias_of_saved(write.tensor, made):
            yield fix(f"change a copy: make {written} with {op_text(made.op)} followed by `.clone()`")
        elif trained:
            backward, name = (f"`{source_text(self.facts, site)}`" for site in (self.failure.site, event.site))
            kept = named(self.facts, trained[0], event.index)
            yield fix(f"move {name} after {backward}: until then the forward pass needs {kept} as it was")
        elif item or (in_place and (name in _ONLY_IN_PLACE or self.facts.tensor(write.tensor).base is not None)):
            copied = fix(f"save a copy: {self.tensor} as `.clone()`")
            yield copied if self._saved_below(event.site) else self._change_a_copy(event, write)
            if item:
                yield fix(
                    "or make the new value without writing: `torch.where`, `masked_fill()`, `torch.stack` of parts"
                )
        elif augmented := self.facts.names.syntax.augmented(self.facts.trace.sites[event.site]):
            target, sign = augmented
            yield fix(f"make a new tensor: `{target} = {target} {sign} ...` in place of `{target} {sign}= ...`")
        elif in_place:
            out_of_place = op_text(event.op[:-1])
            yield fix(f"use {out_of_place} instead of {op_text(event.op)}, and assign the new tensor that it makes")
        elif self._direct(event):
            yield fix(f"let {op_text(event.op)} make a new tensor instead of writing its result into {written}")
        else:
            yield fix(f"give `{source_text(self.facts, event.site)}` a copy of {self.tensor} made with `clone()`")

    def _direct(self, call: Call) -> bool:
        """Returns whether the line itself calls the op, and no library code in between."""
        return self.facts.names.syntax.is_direct(self.facts.trace.sites[call.site], call.op)

    def _saved_below(self, site: int) -> bool:
        """Returns whether the line at `site` saves the tensor, or calls code that does."""
        facts = self.facts
        sites = () if self.by is None else (self.by.site, *callers(facts.trace, self.by.site))
        return any(facts.same_line(saving, site) for saving in sites)

    def _change_a_copy(self, event: Call, write: Write) -> Fix:
        base, made = self.facts.tensor(write.tensor).base, self.facts.maker(write.tensor)
        at = event.index if base is None or made is None else made.index
        name = self.facts.name(write.tensor if base is None else base, at)
        if not name.replace(".", "_").isidentifier():
            return fix(f"change a `.clone()` of {self.tensor}")
        where = "this line" if base is None else "the view of it is taken"
        return fix(f"change a copy: `{name} = {name}.clone()` before {where}")

    def _is_trained(self, number: int, at: int) -> bool:
        """Returns whether the tensor is a leaf that requires grad: the script changed it with recording off, on
        purpose."""
        state = self.facts.state(number, at)
        return state is not None and state.is_leaf and state.requires_grad

    def _is_alias_of_saved(self, written: int, made: Call) -> bool:
        """Returns whether the written tensor was made from the saved one without being a view of it."""
        saved = self._saved_tensor
        return self.facts.tensor(written).base is None and any(access.tensor == saved for access in made.inputs)

    def evidence(self) -> dict[str, object]:
        if self.saved is None:
            return {}
        return {
            "node": self.saved.node,
            "slot": self.saved.slot,
            "saved_version": self.saved.expected,
            "found_version": self.saved.found,
            "changes": [{"op": getattr(e, "op", ""), "before": w.before, "after": w.after} for e, w in self.changes],
        }


def _inner_save(facts: TraceIndex, apply: Call, saved: SavedTensor) -> Call | None:
    """Finds the `ctx.save_for_backward` call inside a custom Function's forward that saved the tensor."""
    if not apply.op.endswith(".apply"):
        return None
    for call in reversed(facts.calls):
        if call.index >= apply.index:
            continue
        if call.op == "ctx.save_for_backward" and call.nodes[0] >= apply.nodes[0]:
            if any(facts.tensor(a.tensor).storage == saved.storage for a in call.inputs):
                return call
    return None


def _by_versions(facts: TraceIndex, saved: SavedTensor, before: int) -> tuple[Call | None, Access | None]:
    """Finds the use of a tensor of this shape at the saved version that was then changed to the version found. For
    saved tensors that the graph does not show, such as those of a checkpoint."""
    for call in reversed(facts.calls):
        if call.index >= before or call.mode != "grad" or call.nodes[0] == call.nodes[1] or call.writes:
            continue
        for access in call.inputs:
            tensor = facts.tensor(access.tensor)
            if tensor.shape != saved.shape or access.version != saved.expected:
                continue
            if any(
                write.after == saved.found for event, write in facts.writes(tensor.counter) if event.index > call.index
            ):
                return call, access
    return None, None


def _others(facts: TraceIndex, failure: Failure, stale: list[SavedTensor]) -> Iterator[str]:
    """Finds the other saved tensors that fail the check, those of one line and name together."""
    groups: dict[tuple[str, str, str], list[SavedTensor]] = defaultdict(list)
    for saved in stale:
        by = facts.call_of_node(saved.sequence, failure.index)
        access = None if by is None else facts.saved(saved, by)
        span = None if by is None else facts.span(by.site)
        where = "" if span is None else f" on line {span.line}"
        what = f"its `{saved.slot}`" if by is None or access is None else named(facts, access.tensor, by.index)
        groups[f"`{saved.node}`", where, what].append(saved)
    for (node, where, what), group in list(groups.items())[:_OTHERS]:
        times = "" if len(group) == 1 else f", {len(group)} times"
        versions = list(dict.fromkeys(str(saved.expected) for saved in group))
        saved_at = f"version{'s' if len(versions) > 1 else ''} {_joined(versions)}"
        found = group[0].found
        yield f"{node}{where} has the same trouble{times}: it saved {saved_at} of {what}, and would find {found}"


def _joined(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
