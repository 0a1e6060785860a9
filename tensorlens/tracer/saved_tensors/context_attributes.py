"""Remembers tensors that custom Functions keep as plain attributes of `ctx`: PyTorch does not check their versions."""

from __future__ import annotations

import weakref
from types import CodeType, FunctionType

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.bytecode import attribute_stores
from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.recording.recorder import version_of
from tensorlens.tracer.saved_tensors.graph import Node

Attribute = tuple[str, torch.Tensor, int]  # its name on `ctx`, the tensor, the version it had when `forward` ended

_ATTRIBUTES = "attributes of a custom Function"


class ContextAttributes:
    """Knows the attributes of custom Functions' nodes that are alive. Keeps no tensor and no node alive itself.

    While there are any, `uncounted` says so: PyTorch's use counts do not show these uses.
    """

    def __init__(self, uncounted: set[str]) -> None:
        self._uncounted = uncounted
        uncounted.discard(_ATTRIBUTES)
        self.by_sequence: dict[int, tuple[weakref.ref[Node], dict[str, tuple[weakref.ref[torch.Tensor], int]]]] = {}

    def __bool__(self) -> bool:
        return bool(self.by_sequence)

    def note(self, result: object) -> None:
        """Remembers the attributes of the node of what a Function's `apply` returned."""
        first = result[0] if isinstance(result, tuple) and result else result
        node: Node | None = first.grad_fn if isinstance(first, torch.Tensor) else None  # type: ignore[assignment]
        attributes = {
            name: (weakref.ref(value), version_of(value))
            for name, value in (vars(node) if hasattr(node, "__dict__") else {}).items()
            if isinstance(value, torch.Tensor)
        }
        if attributes and node is not None:
            self.by_sequence[node._sequence_nr()] = (weakref.ref(node), attributes)
            self._uncounted.add(_ATTRIBUTES)

    def changed(self) -> dict[int, list[Attribute]]:
        """Returns the attributes whose tensor has another version now, by the sequence number of their node."""
        changed: dict[int, list[Attribute]] = {}
        for sequence, (node, attributes) in list(self.by_sequence.items()):
            if node() is None:
                del self.by_sequence[sequence]
                continue
            for name, (ref, version) in attributes.items():
                tensor = ref()
                if tensor is not None and version != NONE and version_of(tensor) != version:
                    changed.setdefault(sequence, []).append((name, tensor, version))
        if not self.by_sequence:
            self._uncounted.discard(_ATTRIBUTES)
        return changed


def stored_at(sites: Sites, node: Node, name: str) -> int | None:
    """Returns the site of the instruction in the Function's code that sets an attribute, if there is only one."""
    forms = (getattr(getattr(node, "_forward_cls", None), form, None) for form in ("forward", "setup_context"))
    codes: list[CodeType] = [form.__code__ for form in forms if type(form) is FunctionType]
    stores = [(code, offset) for code in codes for offset in attribute_stores(code, name)]
    return sites.at(*stores[0], None) if len(stores) == 1 else None
