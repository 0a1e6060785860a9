"""Names tensors as the script does.

A tensor may have several names, and a name may mean several tensors in turn. So a name is asked for at an event:
`Names(trace).display_name(tensor, at=call.index)` is the name that the line of that call uses. Without `at` it is the
name when the run ended. The first of these that exists is used: the operand of the call at `at`, a name that was bound
at the end, the name under which a line stored the tensor, the name by which a line read it, the text of the expression
that made it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cached_property

from tensorlens.analysis.naming.bindings import names_at_end, names_of_modules, root_of
from tensorlens.analysis.naming.code_text import code_text
from tensorlens.analysis.naming.places import Scope, place_of
from tensorlens.analysis.naming.recorded_names import RecordedNames
from tensorlens.analysis.naming.storage_numbers import owners_of_gradients, storage_numbers
from tensorlens.analysis.naming.syntax import Syntax
from tensorlens.analysis.per_trace import once_per_trace
from tensorlens.analysis.states import states_of
from tensorlens.records.model import Call, Event, Failure, Tensor, Trace
from tensorlens.records.source import shown_path

MAX_NAME = 40


class Names:
    """The names and storage numbers that reports show for the tensors of a trace."""

    def __init__(self, trace: Trace) -> None:
        self.syntax = Syntax(trace.sources)
        self._trace = trace
        self._at_end = names_at_end(trace, self.syntax)
        self._in_modules = names_of_modules(trace)
        self._owners = owners_of_gradients(trace)
        self._end_storages = {s.tensor: s.storage for s in trace.end.states if s.storage is not None}
        self._at_event: tuple[int, dict[int, str]] = (-1, {})  # the last event asked about: tensor -> operand

    @cached_property
    def _recorded(self) -> RecordedNames:
        return RecordedNames(self._trace, self.syntax)

    def display_name(self, tensor: int, at: int | None = None) -> str:
        """Returns the name of `tensor` as the line of event `at` would write it; never empty."""
        return self._name(tensor, at) or self._creating_text(tensor) or self._shape_name(tensor)

    def quoted(self, tensor: int, at: int | None = None) -> str:
        """Returns the name for prose: "`out`"; "the tensor made by `change + shortcut` (line 25)" if it has none."""
        name = self._name(tensor, at)
        if name:
            return f"`{name}`"
        text = self._creating_text(tensor)
        return self._made_by(tensor, text, at) if text else self._shape_name(tensor)

    def _name(self, tensor: int, at: int | None) -> str:
        name = self.script_name(tensor, at) or self._gradient_name(tensor) or self._unstored_name(tensor, at)
        return "" if self._is_dead(tensor, name, at) else name

    def script_name(self, tensor: int, at: int | None = None) -> str | None:
        """Returns the name that the script stored `tensor` under; None for a value inside an expression."""
        if at is not None and (name := self._name_at(tensor, at)):
            return (self._path(tensor) if self._is_passing(tensor, name, at) else None) or name
        if tensor in self._at_end:
            return self._at_end[tensor][0] if at is None else self._end_name_at(tensor, at)
        if tensor in self._in_modules:
            return self._in_modules[tensor]
        assigned = self._recorded.assigned.get(tensor)
        if not assigned:
            return None
        before = [event for event in assigned if at is None or event <= at]
        name = assigned[max(before) if before else min(assigned)]
        return name if at is None else self._name_in_function(tensor, at, name)

    def all_names(self, tensor: int) -> tuple[str, ...]:
        """Returns every name of `tensor` at the end of the run, the plainest first."""
        return self._at_end.get(tensor, ())

    def ever_called(self, tensor: int) -> set[str]:
        """Returns every name that `display_name` can give `tensor`, at any event."""
        names = {*self.all_names(tensor), *self._recorded.assigned.get(tensor, {}).values(), self.display_name(tensor)}
        return {*names, *self._recorded.used.get(tensor, {}).values()}

    def owner_of_gradient(self, tensor: int) -> int | None:
        """Returns the tensor whose `.grad` a backward pass put `tensor` into."""
        return self._owners.get(tensor)

    def is_named(self, tensor: int) -> bool:
        """Returns whether the script ever stored `tensor` under a name."""
        return tensor in self._at_end or tensor in self._in_modules or tensor in self._recorded.assigned

    @property
    def stores(self) -> Mapping[int, Mapping[int, str]]:
        """The names under which lines stored each tensor, by event."""
        return self._recorded.assigned

    @property
    def reads(self) -> Mapping[int, Mapping[Scope, str]]:
        """The first name by which each function read a tensor."""
        return self._recorded.used

    def operands(self, event: Call | Failure) -> list[str | None]:
        """Returns the names that the expression of `event` uses for its inputs, in the order of the inputs."""
        return self._recorded.operands(event)

    # --- storages -----------------------------------------------------------------------------------------------

    @cached_property
    def _numbers(self) -> dict[int, int]:
        return storage_numbers(self._trace, self._at_end.keys() | self._in_modules.keys() | self._recorded.last_stored)

    def mark(self, tensor: int) -> str:
        """Returns the mark of the tensor's storage, `#1`; "" if it has none."""
        return self.storage_mark(self.storage_of(tensor))

    def storage_mark(self, storage: int | None) -> str:
        """Returns the mark of a storage, `#1`; "" for one that no named tensor uses."""
        return f"#{self._numbers[storage]}" if storage is not None and storage in self._numbers else ""

    def storage_of(self, tensor: int) -> int | None:
        """Returns the storage that the tensor used last: `.data = ...` and `set_` change it."""
        storage = self._end_storages.get(tensor)
        return states_of(self._trace).last_storage(tensor) if storage is None else storage

    # --- names at an event --------------------------------------------------------------------------------------

    def _name_at(self, tensor: int, at: int) -> str | None:
        """Returns the tensor's name as an operand of event `at`, else the name that the event stores it under."""
        if self._at_event[0] != at:
            self._at_event = at, self._operand_names(at)
        return self._at_event[1].get(tensor) or self._recorded.assigned.get(tensor, {}).get(at)

    def _operand_names(self, at: int) -> dict[int, str]:
        """Maps each input tensor of event `at` to the first operand that names it."""
        event, names = self._trace.event(at), dict[int, str]()
        if isinstance(event, Call):
            for access, name in zip(event.inputs, self.operands(event), strict=False):
                if name:
                    names.setdefault(access.tensor, name)
        return names

    # --- names of parameters ------------------------------------------------------------------------------------

    def _is_parameter(self, tensor: int) -> bool:
        return self._trace.tensors[self._owners.get(tensor, tensor)].type == "Parameter"

    def _is_passing(self, tensor: int, name: str, at: int) -> bool:
        """Returns whether a name means a parameter only for a while at event `at`: as a loop's variable, or because the
        function calls several tensors so."""
        if not self._is_parameter(tensor):
            return False
        scope = self._scope(self._trace.event(at))
        several = scope is not None and len(self._recorded.read.get(scope, {}).get(name, ())) > 1
        return several or root_of(name) in self.syntax.loop_names()

    def _is_dead(self, tensor: int, name: str, at: int | None) -> bool:
        """Returns whether a name is a loop's variable that no longer means this parameter, nor at event `at`."""
        if tensor in self._at_end or not self._is_parameter(tensor) or name not in self.syntax.loop_names():
            return False
        return at is None or self._name_at(tensor, at) != name

    def _path(self, tensor: int) -> str | None:
        """Returns the name of a parameter, or of its gradient, that leads to it from a variable of the script."""
        owner = self._owners.get(tensor, tensor)
        name = self._at_end.get(owner, (None,))[0]
        if name is None or root_of(name) in self.syntax.loop_names():
            name = self._in_modules.get(owner)
        return f"{name}.grad" if name is not None and owner != tensor else name

    def _end_name_at(self, tensor: int, at: int) -> str | None:
        """Returns a name that the tensor has at the end of the run and had at event `at`; else a name that it had
        before."""
        scope, names = self._scope(self._trace.event(at)), self._at_end[tensor]
        already_set = next((name for name in names if self._is_set(name, at)), None)
        if already_set is not None and (_is_path(already_set) or scope is None or scope[1] == "<module>"):
            return already_set
        stored = self._stored_in(scope, tensor, at)
        return stored or already_set or next((name for name in names if _is_path(name)), None)

    def _name_in_function(self, tensor: int, at: int, name: str) -> str:
        """Returns the name that the function of event `at` has for a tensor.

        `name` is the last resort: a line stored the tensor under it, perhaps in another function.
        """
        scope = self._scope(self._trace.event(at))
        stored = self._stored_in(scope, tensor, at)
        if stored is not None:
            return stored
        read = self._recorded.used.get(tensor, {}).get(scope or ("", ""))
        return read or self._operand_text(tensor, at) or name

    def _stored_in(self, scope: Scope | None, tensor: int, at: int) -> str | None:
        """Returns the last name up to event `at` that a line of the function `scope` stored the tensor under."""
        assigned = self._recorded.assigned.get(tensor, {})
        events = [event for event in assigned if event <= at and self._scope(self._trace.event(event)) == scope]
        return assigned[max(events)] if events else None

    def _operand_text(self, tensor: int, at: int) -> str:
        """Returns the text of the operand of the call at `at`, if the tensor is its only input."""
        event = self._trace.event(at)
        if not isinstance(event, Call) or len(event.inputs) != 1 or event.inputs[0].tensor != tensor:
            return ""
        nodes = self.syntax.operands(self._trace.sites[event.site], event.op)
        return code_text(nodes[0], MAX_NAME).replace("`", "'") if len(nodes) == 1 else ""

    def _is_set(self, name: str, at: int) -> bool:
        """Returns whether the function of event `at` may have set the name already: it does not first assign it further
        down."""
        event = self._trace.event(at)
        if event is None or event.site is None:
            return True
        site = self._trace.sites[event.site]
        function = place_of(site)[1]
        first = self.syntax.first_stored(site.span.file, function, root_of(name))
        return first is None or first <= site.span.line

    # --- names of tensors that no line stores -------------------------------------------------------------------

    def _gradient_name(self, tensor: int) -> str | None:
        """Returns `x.grad` for a tensor that was the gradient of `x`."""
        owner = self._owners.get(tensor)
        name = None if owner is None else self.script_name(owner)
        return None if name is None else f"{name}.grad"

    def _unstored_name(self, tensor: int, at: int | None) -> str:
        """Returns the name by which the function of event `at` reads a tensor that no line stores; "" if there is none.

        Another function's name for the tensor may mean another tensor here. It is used only if the tensor was made
        outside this function, or if the expression that made it is not known.
        """
        used, created = self._recorded.used.get(tensor, {}), self._trace.tensors[tensor].created_by
        here = self._trace.event(at if at is not None else created)
        scope, creating_scope = self._scope(here), self._scope(self._trace.event(created))
        if scope in used:
            return used[scope]
        is_made_here = scope == creating_scope and bool(self._creating_text(tensor))
        return "" if is_made_here else next(iter(used.values()), "")

    def _creating_text(self, tensor: int) -> str:
        """Returns the text of the expression whose value is the tensor; "" if that is not certain."""
        created = self._trace.tensors[tensor].created_by
        event = self._trace.event(created) if created is not None else None
        if not isinstance(event, Call) or not self._is_value(tensor, event):
            return ""
        text = self.syntax.text(self.syntax.value_span(self._trace.sites[event.site]), MAX_NAME)
        outputs = [access.tensor for access in event.outputs]
        is_item = len(outputs) > 1 and tensor in outputs and event.op != "Tensor.unbind"
        return f"{text}[{outputs.index(tensor)}]" if is_item and self._recorded.is_direct(event) else text

    def _made_by(self, tensor: int, text: str, at: int | None) -> str:
        """Describes a tensor by the expression that made it: "the tensor made by `change + shortcut` (line 25)".

        The text of an item or an attribute is a name by itself, as is any expression on its own line.
        """
        made, here = self._trace.event(self._trace.tensors[tensor].created_by), self._trace.event(at)
        assert isinstance(made, Call)
        site = self._trace.sites[made.site]
        if isinstance(self.syntax.node(site.span), ast.Subscript | ast.Attribute):
            return f"`{text}`"
        line = getattr(here, "site", None)
        place = None if line is None else self._trace.sites[line].span
        if place is not None and (place.file, place.line) == (site.span.file, site.span.line):
            return f"`{text}`"
        folder = self._trace.script.folder
        file, known = (
            shown_path(path, folder) for path in (site.span.file, place.file if place else self._trace.script.path)
        )
        where = f"line {site.span.line}" if file == known else f"{file}:{site.span.line}"
        return f"the tensor made by `{text}` ({where})"

    def _shape_name(self, tensor: int) -> str:
        known = self._trace.tensors[tensor]
        return f"a {'parameter' if known.type == 'Parameter' else 'tensor'} of shape {shape_text(known)}"

    def _is_value(self, tensor: int, call: Call) -> bool:
        """Returns whether an output of `call` is the value of the expression on its line.

        The output of library code counts as the value in two cases: another line reads it, or nothing reads it and the
        statement uses the value.
        """
        site = self._trace.sites[call.site]
        if self._recorded.is_direct(call):
            return True
        if self.syntax.is_head(site) or self.syntax.is_whole_statement(site):
            return False
        users = self._recorded.users.get(tensor, set())
        return bool(users - {call.site}) or not users

    def _scope(self, event: Event | None) -> Scope | None:
        """Returns the file and the function of the line of an event."""
        site = getattr(event, "site", None)
        return None if site is None else place_of(self._trace.sites[site])[:2]


@once_per_trace
def names_of(trace: Trace) -> Names:
    return Names(trace)


def shape_text(tensor: Tensor) -> str:
    """Returns a tensor's shape as torch writes it: `[2, 3]`."""
    return str(list(tensor.shape))


def _is_path(name: str) -> bool:
    """Returns whether a name leads through an object: `model.fc.weight`, `batch[0]`."""
    return "." in name or "[" in name
