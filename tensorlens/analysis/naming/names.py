"""What to call a tensor: the script's own words for it.

A tensor may have several names, and a name may have meant several tensors. So a name is asked for at an event:
`Names(trace).of(tensor, at=call.index)` is the word that the script's own line uses there; without `at` it is the
name that the run ended with. In order: the operand of the call at `at`, the names that were bound at the end, what
a line assigned the tensor to, what any line called it, the text of the expression that made it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from tensorlens.analysis.naming.bindings import names_at_end, names_of_modules
from tensorlens.analysis.naming.storage_numbers import owners_of_gradients, storage_numbers
from tensorlens.analysis.naming.stored_values import Scope, StoredValues, results_by_site
from tensorlens.analysis.naming.syntax import Syntax, plain_name
from tensorlens.records.model import Access, Call, Change, Event, Failure, Region, Site, Tensor, Trace
from tensorlens.records.source import one_line, text_of

MAX_NAME = 40
_Place = tuple[str, str, int]  # file, function, line
_Scope = tuple[str, str]  # file, function


class Names:
    """Names, storage numbers and shapes of a trace's tensors, as a reader should see them."""

    def __init__(self, trace: Trace) -> None:
        self.syntax = Syntax(trace.sources)
        self._trace = trace
        self._bound = names_at_end(trace, self.syntax)
        self._reached = names_of_modules(trace)
        names = [binding.name for binding in trace.end.bindings if "." in binding.name]
        self._holders = {name.partition(".")[0].partition("[")[0] for name in names}
        self._assigned: dict[int, dict[int, str]] = defaultdict(dict)  # tensor -> event -> name
        self._used: dict[int, dict[_Scope, str]] = defaultdict(dict)  # tensor -> function -> what it calls the tensor
        self._users: dict[int, set[int]] = defaultdict(set)  # tensor -> the sites of the calls that read it
        self._owners = owners_of_gradients(trace)
        self._places: dict[int, int] = {}  # tensor -> the storage it was last seen in
        self._operands: dict[tuple[int, str, int], list[str | None]] = {}
        self._at_event: tuple[int, dict[int, str]] = (-1, {})  # the event asked about last: tensor -> its operand
        self._latest: dict[tuple[int, str, str], int] = {}  # (site, mode, name) -> the last tensor stored there
        self._read_events()
        self._numbers = storage_numbers(trace, self._bound.keys() | self._reached.keys() | set(self._latest.values()))

    def display_name(self, tensor: int, at: int | None = None) -> str:
        """The name of `tensor`, as the line of event `at` would say it; never empty."""
        name = self.script_name(tensor, at) or self._gradient(tensor) or self._passing(tensor, at)
        return name or f"a tensor of shape {shape_text(self._trace.tensors[tensor])}"

    def script_name(self, tensor: int, at: int | None = None) -> str | None:
        """The name that the script gave `tensor`; None if it only passed through an expression."""
        if at is not None and (name := self._at(tensor, at)):
            return name
        if tensor in self._bound:
            return self._bound[tensor][0] if at is None else self._bound_at(tensor, at)
        if tensor in self._reached:
            return self._reached[tensor]
        assigned = self._assigned.get(tensor)
        if not assigned:
            return None
        before = [event for event in assigned if at is None or event <= at]
        name = assigned[max(before) if before else min(assigned)]
        return name if at is None else self._in_scope(tensor, at, name)

    def _bound_at(self, tensor: int, at: int) -> str | None:
        """Of the names that led to `tensor` at the end, one that does by event `at`; else what it was called so far."""
        scope, names = self._scope(self._trace.event(at)), self._bound[tensor]
        lasting = next((name for name in names if self._is_set(name, at)), None)
        if lasting is not None and (_is_path(lasting) or scope is None or scope[1] == "<module>"):
            return lasting
        assigned = self._assigned.get(tensor, {})
        own = [event for event in assigned if event <= at and self._scope(self._trace.event(event)) == scope]
        if own:
            return assigned[max(own)]
        return lasting or next((name for name in names if _is_path(name)), None)

    def _in_scope(self, tensor: int, at: int, name: str) -> str:
        """What the function of event `at` calls a tensor to which another function may have given `name`."""
        scope, assigned = self._scope(self._trace.event(at)), self._assigned[tensor]
        own = [event for event in assigned if event <= at and self._scope(self._trace.event(event)) == scope]
        if own:
            return assigned[max(own)]
        return self._used.get(tensor, {}).get(scope or ("", "")) or self._operand_text(tensor, at) or name

    def _operand_text(self, tensor: int, at: int) -> str:
        """The expression that the call at `at` takes the tensor from, where it can be no other."""
        event = self._trace.event(at)
        if not isinstance(event, Call) or len(event.inputs) != 1 or event.inputs[0].tensor != tensor:
            return ""
        nodes = self.syntax.operands(self._trace.sites[event.site], event.op)
        return one_line(ast.unparse(nodes[0]), MAX_NAME).replace("`", "'") if len(nodes) == 1 else ""

    def _gradient(self, tensor: int) -> str | None:
        """`x.grad`, for what was the gradient of `x`."""
        owner = self._owners.get(tensor)
        name = None if owner is None else self.script_name(owner)
        return None if name is None else f"{name}.grad"

    def _passing(self, tensor: int, at: int | None) -> str:
        """The name of a tensor that the line of event `at` stores nowhere: what its function calls it on another line,
        or the expression that made it there. A function that it was passed to may use a name for it that means another
        tensor here: that name is taken only for what a line of a third function made."""
        used, made = self._used.get(tensor, {}), self._trace.tensors[tensor].created_by
        here = self._trace.event(at if at is not None else made)
        scope, maker = self._scope(here), self._scope(self._trace.event(made))
        if scope in used:
            return used[scope]
        text = self._made_by(tensor)
        return text if text and scope == maker else next(iter(used.values()), text)

    def _scope(self, event: Event | None) -> _Scope | None:
        """The file and the function of the line of an event."""
        site = getattr(event, "site", None)
        return None if site is None else place_of(self._trace.sites[site])[:2]

    def quoted(self, tensor: int, at: int | None = None) -> str:
        """The name for prose: code in backticks, a description without."""
        name = self.display_name(tensor, at)
        return name if name.startswith("a tensor of") else f"`{name}`"

    def all_names(self, tensor: int) -> tuple[str, ...]:
        """Every name that reached `tensor` when the run ended, the plainest first."""
        return self._bound.get(tensor, ())

    def is_named(self, tensor: int) -> bool:
        """Whether the script ever held `tensor` under a name."""
        return tensor in self._bound or tensor in self._reached or tensor in self._assigned

    def operands(self, event: Call | Failure) -> list[str | None]:
        """The names that the expression of `event` uses for its inputs, in the order of the inputs."""
        if event.site is None or event.op is None:
            return []
        key = (event.site, event.op, len(event.inputs))
        names = self._operands.get(key)
        if names is None:
            nodes = self.syntax.operands(self._trace.sites[event.site], event.op)
            names = [plain_name(node) for node in nodes]
            # what is indexed comes first, whatever it is indexed with
            names = names[:1] if event.op.endswith("item__") else _paired(names, len(event.inputs))
            self._operands[key] = names
        return names

    def mark(self, tensor: int) -> str:
        """`#1`: the tensor's memory, numbered as named tensors came to lie in it; "" for none. Of the tensors that a
        loop stored under one name, the last counts."""
        return self.storage_mark(self.storage_of(tensor))

    def storage_mark(self, storage: int | None) -> str:
        """The mark of a storage, `#1`; "" for one that no named tensor lies in."""
        return f"#{self._numbers[storage]}" if storage is not None and storage in self._numbers else ""

    def storage_of(self, tensor: int) -> int | None:
        """Where the tensor lay when it was last seen: `.data = ...` and `set_` move it."""
        return self._places.get(tensor, self._trace.tensors[tensor].storage)

    def _at(self, tensor: int, at: int) -> str | None:
        """The operand that it is there, whose name a change in place leaves alone; else the name it is stored as."""
        if self._at_event[0] != at:
            self._at_event = at, self._inputs_by_name(at)
        return self._at_event[1].get(tensor) or self._assigned.get(tensor, {}).get(at)

    def _inputs_by_name(self, at: int) -> dict[int, str]:
        """The first operand of event `at` that names each of its input tensors."""
        event, found = self._trace.event(at), dict[int, str]()
        if isinstance(event, Call):
            for access, name in zip(event.inputs, self.operands(event), strict=False):
                if name:
                    found.setdefault(access.tensor, name)
        return found

    def _is_set(self, name: str, at: int) -> bool:
        """Whether the function of event `at` may have set the name by then: not on a line before all that set it."""
        event = self._trace.event(at)
        if event is None or event.site is None:
            return True
        site = self._trace.sites[event.site]
        function = place_of(site)[1]
        first = self.syntax.first_stored(site.span.file, function, name.partition(".")[0].partition("[")[0])
        return first is None or first <= site.span.line

    def _read_events(self) -> None:
        calls = list(_with_last_of_line(self._trace))
        heard: dict[Scope, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for call, _ in calls:
            known = self._trace.sites[call.site]
            for access in call.inputs:
                self._users[access.tensor].add(call.site)
            for access, name in zip(call.inputs, self.operands(call), strict=False):
                if name:
                    self._used[access.tensor].setdefault(place_of(known)[:2], name)
                    heard[known.span.file, known.function][name].add(access.tensor)
            for access, name in self._outputs(call):
                self._assign(access.tensor, call.index, name, (call.site, call.mode))
            for state in call.states:
                if state.storage is not None:
                    self._places[state.tensor] = state.storage
        stored = StoredValues(self._trace, heard)
        for site, visits in results_by_site(self._trace, calls, self._is_direct).items():
            if not self._holders.intersection(self._trace.sites[site].targets):
                for tensor, event, name in stored.named(site, visits):
                    self._assign(tensor, event, name, (site, ""))
        self._places.update({s.tensor: s.storage for s in self._trace.end.states if s.storage is not None})

    def _assign(self, tensor: int, event: int, name: str, place: tuple[int, str]) -> None:
        self._assigned[tensor].setdefault(event, name)
        self._latest[*place, name] = tensor

    def _is_direct(self, call: Call) -> bool:
        return self.syntax.is_direct(self._trace.sites[call.site], call.op)

    def _outputs(self, call: Call) -> Iterable[tuple[Access, str]]:
        """The names that the results of a call go to, where the expression is the call itself."""
        site, outputs = self._trace.sites[call.site], call.outputs
        if call.op == "Tensor.unbind" and (names := self.syntax.unpacked(site)):
            return zip(outputs, names * len(outputs) if len(names) == 1 else names, strict=False)
        if not site.targets or not outputs or not self._is_direct(call):
            return ()
        names = _spread(site.targets, len(outputs))
        if len(outputs) == len(names):
            return zip(outputs, names, strict=True)
        if len(names) == 1:
            return [(access, f"{names[0]}[{position}]") for position, access in enumerate(outputs)]
        return ()

    def _made_by(self, tensor: int) -> str:
        created = self._trace.tensors[tensor].created_by
        event = self._trace.event(created) if created is not None else None
        if not isinstance(event, Call) or not self._is_value(tensor, event):
            return ""
        span = self.syntax.value_span(self._trace.sites[event.site])
        text = one_line(text_of(self._trace.sources.get(span.file, ""), span), MAX_NAME).replace("`", "'")
        outputs = [access.tensor for access in event.outputs]
        several = len(outputs) > 1 and tensor in outputs and self._is_direct(event) and event.op != "Tensor.unbind"
        return f"{text}[{outputs.index(tensor)}]" if several else text

    def _is_value(self, tensor: int, call: Call) -> bool:
        """Whether what `call` made is the value of its line's expression, as far as that can be told: of what library
        code makes, it is what another expression uses, or what nothing used up where something takes the value."""
        site = self._trace.sites[call.site]
        if self._is_direct(call):
            return True
        if self.syntax.is_head(site) or self.syntax.is_whole_statement(site):
            return False
        used = self._users.get(tensor, set())
        return bool(used - {call.site}) or not used


_latest: list[tuple[Trace, Names]] = []


def names_of(trace: Trace) -> Names:
    """The names of a trace, read once for the findings and for the renderer."""
    if not _latest or _latest[0][0] is not trace:
        _latest[:] = [(trace, Names(trace))]
    return _latest[0][1]


def shape_text(tensor: Tensor) -> str:
    """`[2, 3]`, as torch writes the shape."""
    return str(list(tensor.shape))


def place_of(site: Site) -> _Place:
    """The line of a site within its function; what runs in a comprehension or lambda belongs to the function round
    it."""
    function = site.function
    while function.endswith((".<listcomp>", ".<genexpr>", ".<dictcomp>", ".<setcomp>", ".<lambda>")):
        function = function.rpartition(".")[0].removesuffix(".<locals>")
    inner = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<lambda>"}
    return site.span.file, "<module>" if function in inner else function, site.span.line


def _paired(names: list[str | None], inputs: int) -> list[str | None]:
    """The operands matched to so many inputs, where their number leaves no doubt which is which."""
    if len(names) == inputs:
        return names
    unique = list(dict.fromkeys(names))
    if len(unique) == inputs:
        return unique
    return names[:1] if inputs == 1 and len(names) == 1 else []


def _with_last_of_line(trace: Trace) -> Iterator[tuple[Call, bool]]:
    """Each call, and whether its line goes on elsewhere after it, neither there nor in what that called: the last call
    below a line makes its value."""
    events = [event for event in trace.events if not isinstance(event, Region | Change)]
    following = [*(event.site for event in events[1:]), None]
    above = cache(lambda site: frozenset(callers(trace, site)))
    for event, after in zip(events, following, strict=False):
        if isinstance(event, Call):
            yield event, event.site != after and (after is None or event.site not in above(after))


def callers(trace: Trace, site: int) -> Iterator[int]:
    """The sites that a site was called from, the innermost first."""
    seen = {site}
    caller = trace.sites[site].caller
    while caller is not None and caller not in seen:
        seen.add(caller)
        yield caller
        caller = trace.sites[caller].caller


def _is_path(name: str) -> bool:
    """Whether a name leads through an object: `model.fc.weight`, `batch[0]`."""
    return "." in name or "[" in name


def _spread(targets: tuple[str, ...], size: int) -> tuple[str, ...]:
    """The targets of so many values: `*rest` stands for all that the others leave."""
    starred = next((position for position, name in enumerate(targets) if name.startswith("*")), None)
    if starred is None:
        return targets
    rest = range(size - len(targets) + 1)
    items = [f"{targets[starred][1:]}[{position}]" for position in rest]
    return (*targets[:starred], *items, *targets[starred + 1 :])
