"""Backward passes: both `backward` and `autograd.grad` go through one function of torch's, which is wrapped here.

Around each pass the gradients of the leaves are noted as short text; while it runs the mode is on again, so that hooks,
custom backward functions and recomputed checkpoints are seen; when it fails, the graph is read
(`failed_backward_nodes`).
"""

from __future__ import annotations

from collections.abc import Container
from itertools import count
from threading import get_ident
from typing import Any

import torch

from tensorlens.journal.rows import BACKWARD, BACKWARD_START, DEAD_ENDS, NONE
from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.stack_room import StackRoom
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors, version_of
from tensorlens.tracer.recording.tensor_text import short_values
from tensorlens.tracer.saved_tensors.failed_backward import (
    failed_backward_nodes,
    last_executed_node,
    nondifferentiable_nodes,
)
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE
from tensorlens.tracer.saved_tensors.nonfinite_derivatives import nonfinite_nodes, note_nonfinite

_Gradients = dict[int, tuple[Any, int, int]]  # leaf -> values, id and version of its gradient
_tokens = count()
_next_sequence = torch._C._autograd._get_sequence_nr


def wrap_engine(recorder: Recorder, engine: Any) -> Any:
    """torch.autograd's `_engine_run_backward`, recording."""
    ended, room = _Ended(), StackRoom()

    def _engine_run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return engine(t_outputs, *args, **kwargs)
        frame, token, reached = caller(), next(_tokens), _next_sequence()
        roots: list[torch.Tensor] = []
        collect_tensors(t_outputs, roots)
        with torch._C.DisableTorchFunction(), MutedDispatch():
            flat = recorder.accesses(roots)
            before = _gradients(recorder, {})
            for root in roots:
                recorder.training.call_backward(root)
            recorder.training.reached.look(frame)
            with recorder.quiet():
                recorder.saved_tensors.note_stale(roots, frame)
                singular = nonfinite_nodes(recorder, roots, frame)
            sampled = None if recorder.samples is None else recorder.samples.start(roots)
        recorder.rows.append((BACKWARD_START, token))
        failed, result = True, None
        try:
            with room.for_pass(), recorder:
                result = engine(t_outputs, *args, **kwargs)
            failed = False
            if singular:
                with torch._C.DisableTorchFunction(), MutedDispatch():
                    note_nonfinite(recorder, singular, result)
            return result
        except BaseException as error:
            with torch._C.DisableTorchFunction(), MutedDispatch():
                _note_failure(recorder, error, (roots, flat), frame, args, ended.older())
            raise
        finally:
            asked = _note_pass(recorder, (token, frame, flat, before), args, failed)
            ended.note(reached, args[1] if len(args) >= 4 else False)
            if sampled is not None:
                with torch._C.DisableTorchFunction(), MutedDispatch():
                    sampled(result, asked, failed)

    return _engine_run_backward


def _note_pass(recorder: Recorder, begun: tuple[Any, ...], args: Any, failed: bool) -> list[torch.Tensor]:
    """Write the BACKWARD row of a pass that has ended; the tensors whose gradients were asked for. `begun`: its token,
    the frame that called it, its roots as accesses, the gradients before it; `args`: the engine's."""
    token, frame, flat, before = begun
    with torch._C.DisableTorchFunction(), MutedDispatch():
        changes = _changes(before, _gradients(recorder, before), recorder.leaves)
        _, retain, create, inputs = args[:4] if len(args) >= 4 else (None, False, False, ())
        asked: list[torch.Tensor] = []
        collect_tensors(inputs, asked)
        wanted = tuple(recorder.tensor_ids.id_of(t) for t in asked)
        if not retain and not wanted:
            recorder.training.held.round_ends(by_step=False)
    row = (BACKWARD, token, _op(frame), recorder.sites.site_or_outside(frame), tuple(flat), changes, wanted)
    recorder.rows.append((*row, bool(retain), bool(create), failed))
    return asked


class _Ended:
    """Which nodes the passes that have ended can have freed: those made before the last of them began."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self._older = _next_sequence()  # there may have been passes before the recording

    def older(self) -> int:
        """A node that an earlier pass can have freed has a sequence number below this one."""
        return self._older if self._thread == get_ident() else LEAF_SEQUENCE  # each thread counts for itself

    def note(self, reached: int, retain: Any) -> None:
        """A pass has ended that began when the next node was to have this sequence number."""
        self._older = self.older() if retain else max(self.older(), reached)


def _note_failure(recorder: Recorder, error: Any, given: Any, frame: Any, args: Any, older: int) -> None:
    """Write the FAILURE row of a failed pass. `given`: its roots, as tensors and as accesses; `args`: the engine's."""
    roots, flat = given
    retains, inputs = (args[1], args[3]) if len(args) >= 4 else (False, ())
    asked: list[torch.Tensor] = []
    collect_tensors(inputs, asked)
    if len(asked) < len(inputs):
        asked = []  # edges of the graph were asked for: which of its nodes lead there is not known
    saved = failed_backward_nodes(recorder, roots, str(error), asked, older)
    noted = recorder.failures
    recorder.fail(error, _op(frame), flat, frame, saved)
    if recorder.failures > noted:
        recorder.rows.append(
            (DEAD_ENDS, noted, nondifferentiable_nodes(roots), () if retains else last_executed_node(roots))
        )


def _op(frame: Any) -> str:
    """The public function that was called: `autograd.grad`, `autograd.backward` or `Tensor.backward`."""
    if frame.f_code.co_name == "grad":
        return "autograd.grad"
    caller = frame.f_back
    called_by_tensor = caller is not None and caller.f_code is torch.Tensor.backward.__code__
    return "Tensor.backward" if called_by_tensor else "autograd.backward"


def _gradients(recorder: Recorder, before: _Gradients) -> _Gradients:
    """What is known of the gradient of every leaf that is alive and has one. The values of one that is as it
    was in `before` are taken from there."""
    found: _Gradients = {}
    for number, ref in list(recorder.leaves.items()):
        tensor = ref()
        if tensor is None:
            del recorder.leaves[number]
        elif (tensor.is_leaf or tensor.retains_grad) and (gradient := tensor.grad) is not None:
            known = before.get(number)
            mark = recorder.tensor_ids.id_of(gradient), version_of(gradient)
            found[number] = known if known is not None and known[1:] == mark else (short_values(gradient), *mark)
    return found


def _changes(before: _Gradients, after: _Gradients, leaves: Container[int]) -> tuple[Any, ...]:
    """The gradients that a pass gave or changed: (leaf, values before, values after, (grad, version, version) or None,
    what `.grad` holds)."""
    gone = [number for number in before if number not in after and number in leaves]
    changes: list[Any] = [(number, before[number][0], None, None, NONE) for number in gone]
    for number, (values, grad, version) in after.items():
        old_values, old_grad, old_version = before.get(number, (None, NONE, NONE))
        if (grad, version) == (old_grad, old_version):
            continue
        write = (grad, old_version, version) if grad == old_grad and version > old_version else None
        changes.append((number, old_values, values, write, grad))
    return tuple(changes)
