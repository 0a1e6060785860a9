"""The invariants of a `Trace`, checked where one comes from a file or from a run that was cut short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints

from tensorlens.records.callbacks import Function, Handed, Registration, Run
from tensorlens.records.claim import Claim
from tensorlens.records.failure_context import Argument, Assignment, Value
from tensorlens.records.model import (
    Access,
    Backward,
    Binding,
    Call,
    Change,
    Event,
    Failure,
    Gap,
    Gradient,
    GradMode,
    Notice,
    Region,
    SavedTensor,
    Script,
    Site,
    Span,
    State,
    Storage,
    Tensor,
    Total,
    Trace,
    Write,
)
from tensorlens.records.observations import (
    Held,
    Nested,
    Overwrite,
    Reached,
    Sighted,
    Singular,
    Stale,
    Step,
    Uncalled,
    Unregistered,
)
from tensorlens.records.reference import Difference

REFERENCES: dict[type, dict[str, str]] = {
    Site: {"caller": "sites"},
    Tensor: {"storage": "storages", "base": "tensors"},
    State: {"tensor": "tensors", "storage": "storages"},
    Access: {"tensor": "tensors"},
    Write: {"tensor": "tensors"},
    Call: {"site": "sites"},
    Gradient: {"tensor": "tensors", "held": "tensors"},
    Backward: {"site": "sites", "inputs": "tensors"},
    GradMode: {"site": "sites"},
    Region: {"site": "sites"},
    Change: {"site": "sites"},
    Notice: {"site": "sites"},
    Gap: {"site": "sites"},
    SavedTensor: {"tensor": "tensors", "storage": "storages"},
    Value: {"site": "sites", "used": "sites"},
    Argument: {"tensor": "tensors"},
    Failure: {"site": "sites", "stack": "sites"},
    Binding: {"tensor": "tensors"},
    Script: {"failure": "failures"},
    Total: {"site": "sites"},
    Function: {"defined": "sites", "returns": "sites"},
    Registration: {"function": "functions", "site": "sites"},
    Handed: {"tensor": "tensors"},
    Run: {"registration": "registrations", "returned": "sites", "given": "tensors"},
    Assignment: {"site": "sites", "old": "tensors", "new": "tensors"},
    Overwrite: {"opened": "sites", "sites": "sites", "tensor": "tensors"},
    Stale: {"overwrite": "overwrites", "tensor": "tensors", "site": "sites"},
    Difference: {"tensor": "tensors"},
    Singular: {"leaf": "tensors"},
    Nested: {"tensors": "tensors"},
    Step: {"site": "sites", "parameters": "tensors", "gradients": "tensors", "carried": "tensors"},
    Uncalled: {"site": "sites", "tensor": "tensors"},
    Unregistered: {"tensor": "tensors"},
    Held: {"tensors": "tensors"},
    Reached: {"tensors": "tensors"},
    Sighted: {"site": "sites", "tensors": "tensors"},
}
"""The fields that hold positions in a table of the trace."""

LEAST: dict[type, dict[str, int]] = {
    Span: {"line": 1, "column": 0, "end_line": 1, "end_column": 0},
    Storage: {"nbytes": 0},
    Claim: {"line": 1, "round": 0},
    Gap: {"count": 1},
    Total: {"count": 1},
}
"""The fields that hold no smaller number."""


def validate(trace: Trace) -> list[str]:
    """The invariants that `trace` breaks, in words; none for a sound trace."""
    problems: list[str] = []
    tables: dict[str, tuple[Any, ...]] = {"site": trace.sites, "tensor": trace.tensors, "storage": trace.storages}
    tables |= {"function": trace.callbacks.functions, "registration": trace.callbacks.registrations}
    for name, table in tables.items():
        problems += [f"{name} {n} has id {record.id}" for n, record in enumerate(table) if record.id != n]
    sizes = {name: len(getattr(trace, name)) for name in ("sites", "tensors", "storages", "failures")}
    sizes |= {"functions": len(trace.callbacks.functions), "registrations": len(trace.callbacks.registrations)}
    sizes["overwrites"] = len(trace.inspection.overwrites)
    for record in _records(trace):
        for name, kind in REFERENCES.get(type(record), {}).items():
            held, size = getattr(record, name), sizes[kind]
            for n in held if type(held) is tuple else (held,):
                if n is not None and not 0 <= n < size:
                    problems.append(f"{type(record).__name__}.{name} is unknown {kind[:-1]} {n}")
        if type(record) in LEAST:
            problems += _too_small(record)
    for site in trace.sites:
        problems += _too_small(site.span)
    for before, event in zip((None, *trace.events), trace.events, strict=False):
        if before is not None and before.index >= event.index:
            problems.append(f"event {event.index} comes after event {before.index}")
        problems.extend(_check_event(event))
    return problems


def _records(record: Any) -> Iterator[Any]:
    """Every record in `record`, itself first, but for places in the source."""
    waiting = [record]
    while waiting:
        found = waiting.pop()
        yield found
        for name in _holding(found.__class__):
            value = getattr(found, name)
            if type(value) is tuple:
                waiting.extend([item for item in value if is_dataclass(item)])
            elif value is not None:
                waiting.append(value)


@cache
def _holding(kind: Any) -> tuple[str, ...]:
    """The fields of a record that hold others."""
    hints = get_type_hints(kind)
    return tuple(name for name, hint in hints.items() if hint is not Span and _names_record(hint))


def _names_record(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_names_record, get_args(hint)))


def _too_small(record: Any) -> list[str]:
    bounds = LEAST.get(type(record), {}).items()
    return [f"{type(record).__name__}.{name} is {getattr(record, name)}" for name, least in bounds
            if getattr(record, name) < least]  # fmt: skip


def _check_event(event: Event) -> list[str]:
    problems = []
    index = event.index
    if isinstance(event, Call):
        if event.nodes[0] > event.nodes[1]:
            problems.append(f"event {index} has the node bracket {event.nodes}")
        problems += [f"event {index}: write {w} does not advance" for w in event.writes if w.after <= w.before]
    elif isinstance(event, Backward) and event.started > index:
        problems.append(f"backward {index} started after it ended")
    return problems
