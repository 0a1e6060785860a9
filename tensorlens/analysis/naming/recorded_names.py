"""Collects the names that the lines of a script use for tensors: where they store them and where they read them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from tensorlens.analysis.naming.bindings import root_of
from tensorlens.analysis.naming.places import Scope, callers, place_of
from tensorlens.analysis.naming.stored_values import StoredValues, results_by_site
from tensorlens.analysis.naming.syntax import Syntax, plain_name
from tensorlens.records.model import Call, Change, Failure, Region, Trace

_UNPLACED = (Region, Change)
_LERPS = ("Tensor.lerp_", "Tensor.lerp", "torch.lerp")


class RecordedNames:
    """Records under which names the lines of a trace store tensors, and by which names they read them."""

    def __init__(self, trace: Trace, syntax: Syntax) -> None:
        self.assigned: dict[int, dict[int, str]] = defaultdict(dict)  # tensor -> event -> name that it is stored under
        self.used: dict[int, dict[Scope, str]] = defaultdict(dict)  # tensor -> function -> first name it is read by
        self.read: dict[Scope, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))  # function -> its names
        self._latest: dict[tuple[int, str, str], int] = {}  # (site, grad mode, name) -> the last tensor stored there
        self._trace = trace
        self._syntax = syntax
        self._operands: dict[tuple[int, str, int], list[str | None]] = {}
        self._read_events()

    @property
    def last_stored(self) -> set[int]:
        """The tensors that a site stored last under a name: not those that earlier iterations of a loop stored
        there."""
        return set(self._latest.values())

    def operands(self, event: Call | Failure) -> list[str | None]:
        """Returns the names that the expression of `event` uses for its inputs, in the order of the inputs."""
        if event.site is None or event.op is None:
            return []
        key = (event.site, event.op, len(event.inputs))
        names = self._operands.get(key)
        if names is None:
            nodes = self._syntax.operands(self._trace.sites[event.site], event.op)
            names = [plain_name(node) for node in nodes]
            # the tensor that is indexed comes first, whatever the index is
            names = names[:1] if event.op.endswith("item__") else _matched(names, len(event.inputs), event.op)
            self._operands[key] = names
        return names

    def is_direct(self, call: Call) -> bool:
        """Returns whether the expression on the line is the call itself, not library code that makes the call."""
        return self._syntax.is_direct(self._trace.sites[call.site], call.op)

    @cached_property
    def users(self) -> dict[int, set[int]]:
        """The sites of the calls that read each tensor."""
        users: dict[int, set[int]] = defaultdict(set)
        for event in self._trace.events:
            if isinstance(event, Call):
                for access in event.inputs:
                    users[access.tensor].add(event.site)
        return users

    def _read_events(self) -> None:
        calls = list(_with_last_of_line(self._trace))
        kinds: dict[tuple[int, str, int, int], _Expression] = {}
        used, assigned, latest = self.used, self.assigned, self._latest
        for call, _ in calls:
            inputs, outputs = call.inputs, call.outputs
            key = call.site, call.op, len(inputs), len(outputs)
            kind = kinds.get(key)
            if kind is None:
                kind = kinds[key] = self._expression(call)
            for position, name, tensors in kind.read:
                tensor = inputs[position].tensor
                used[tensor].setdefault(kind.scope, name)
                tensors.add(tensor)
            for access, name in zip(outputs, kind.stored, strict=False):
                assigned[access.tensor].setdefault(call.index, name)
                latest[call.site, call.mode, name] = access.tensor
        stored = StoredValues(self._trace, self.read)
        modules = _module_variables(self._trace)
        for number, runs in results_by_site(self._trace, calls, self.is_direct).items():
            if not modules.intersection(self._trace.sites[number].targets):
                for tensor, event, name in stored.named(number, runs):
                    assigned[tensor].setdefault(event, name)
                    latest[number, "", name] = tensor

    def _expression(self, call: Call) -> _Expression:
        """Returns the names that the line of a call reads and stores, and notes that it reads them."""
        site = self._trace.sites[call.site]
        read = self.read[site.span.file, site.function]
        operands = zip(range(len(call.inputs)), self.operands(call), strict=False)
        named = tuple((position, name, read[name]) for position, name in operands if name)
        return _Expression(place_of(site)[:2], named, tuple(self._stored_names(call)))

    def _stored_names(self, call: Call) -> Sequence[str]:
        """Returns the names that the line of a call stores its outputs under, in their order.

        There are none if library code made the call.
        """
        site, outputs = self._trace.sites[call.site], call.outputs
        if call.op == "Tensor.unbind" and (names := self._syntax.unpacked(site)):
            return names * len(outputs) if len(names) == 1 else names
        if not site.targets or not outputs or not self.is_direct(call):
            return ()
        names = _spread(site.targets, len(outputs))
        if len(outputs) == len(names):
            return names
        return [f"{names[0]}[{position}]" for position in range(len(outputs))] if len(names) == 1 else ()


@dataclass(frozen=True, slots=True)
class _Expression:
    """Holds what every call of one op at one site has in common: the function, and the names of inputs and outputs."""

    scope: Scope
    read: tuple[tuple[int, str, set[int]], ...]  # position of the input, its name, all tensors that are read by it
    stored: tuple[str, ...]


def _module_variables(trace: Trace) -> set[str]:
    """Returns the variables that held objects with tensors as attributes at the end of the run: `model` of
    `model.weight`."""
    names = (binding.name for binding in trace.end.bindings if "." in binding.name)
    return {root_of(name) for name in names}


def _matched(names: list[str | None], inputs: int, op: str) -> list[str | None]:
    """Returns one operand for each input of a call; none if it is not clear which operand is which input."""
    if len(names) == inputs:
        return names
    if op in _LERPS and inputs == 2:
        return names[:2]  # the weight is a number
    unique = list(dict.fromkeys(names))
    if len(unique) == inputs:
        return unique
    return names[:1] if inputs == 1 and len(names) == 1 else []


def _with_last_of_line(trace: Trace) -> Iterator[tuple[Call, bool]]:
    """Yields each call, and whether it is the last in one run of its line. The last call makes the line's value.

    After the last call, the next event is neither on that line nor in a function that the line calls.
    """
    events = [event for event in trace.events if not isinstance(event, _UNPLACED)]
    next_sites = [*(event.site for event in events[1:]), None]
    above = cache(lambda site: frozenset(callers(trace, site)))
    for event, after in zip(events, next_sites, strict=False):
        if isinstance(event, Call):
            site = event.site
            yield event, site != after and (after is None or site not in above(after))


def _spread(targets: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Returns a target for each of `size` values: `*rest` takes those that the other targets leave."""
    starred = next((position for position, name in enumerate(targets) if name.startswith("*")), None)
    if starred is None:
        return targets
    rest = range(size - len(targets) + 1)
    items = [f"{targets[starred][1:]}[{position}]" for position in rest]
    return (*targets[:starred], *items, *targets[starred + 1 :])
