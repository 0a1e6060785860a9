"""Records the state when a run ends: the tensors that are alive, and the names that reach them."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

import torch

from tensorlens.journal.rows import EndRow
from tensorlens.records.limits import LISTED_STATES
from tensorlens.tracer.isolation.module_tree import Limit, Parts, module_tensors, own_attributes, reachable_tensors
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.tensor_text import short_text

_DEPTH = 3


def write_end(recorder: Recorder, namespace: dict[str, object], traceback: TracebackType | None) -> None:
    """Writes the END row. Names are read first, so that named tensors are among those whose state is kept."""
    with torch._C.DisableTorchFunction():
        bindings = _bindings(recorder, namespace, traceback)
        named = {tensor for _, tensor, _ in bindings}
        live = recorder.tensor_ids.live()
        live.sort(key=lambda pair: (pair[0] not in named, pair[0]))
        states = tuple((*recorder.state_at_end(pair[1]), _grad_text(recorder, *pair)) for pair in live[:LISTED_STATES])
        recorder.rows.write(EndRow, states, tuple(bindings))


def _grad_text(recorder: Recorder, number: int, tensor: torch.Tensor) -> str | None:
    """Returns a short text of `.grad` if autograd keeps one. Reading it from any other tensor would warn."""
    try:
        keeps = tensor.is_leaf or tensor.retains_grad
    except RuntimeError:
        return None
    gradients, _ = recorder.passes.read([(number, tensor)] if keeps else [])
    return short_text(gradients[0][1]) if gradients else None


def _bindings(
    recorder: Recorder, namespace: dict[str, object], traceback: TracebackType | None
) -> list[tuple[str, int, str]]:
    """Returns (path, tensor id, function) of each name of the module, and of the functions in the traceback."""
    limit = Limit(collections=recorder.statistics is not None)

    def attributes_of(value: object) -> Parts:
        return [(f".{name}", item) for name, item in own_attributes(recorder.sites.is_user, value)]

    def through_modules(path: str, module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
        return module_tensors(path, module, limit)

    bindings: dict[tuple[str, str], int] = {}
    scopes: list[tuple[str, dict[str, object]]] = [("<module>", namespace)]
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if recorder.sites.is_user(code.co_filename) and code.co_name != "<module>":
            scopes.append((code.co_qualname, traceback.tb_frame.f_locals))
        traceback = traceback.tb_next
    for scope, names in scopes:
        for name, value in list(names.items()):
            if not name.startswith("__"):
                for path, tensor in reachable_tensors(value, _DEPTH, limit, through_modules, attributes_of, name):
                    number = recorder.tensor_ids.find(tensor)
                    if number is None:
                        number = recorder.tensor_ids.id_of(tensor)
                    bindings.setdefault((path, scope), number)
    return [(path, number, scope) for (path, scope), number in bindings.items()]
