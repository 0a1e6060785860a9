"""Records backward passes. `backward` and `autograd.grad` both call one function of PyTorch, which is patched here.

Before and after each pass the gradients of the leaves are noted as short text. While it runs, the mode is active, so
that hooks, custom backward functions and recomputed checkpoints are seen. If it fails, the graph is read
(`failed_backward_nodes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, islice
from threading import get_ident
from types import FrameType
from typing import NamedTuple

import torch

from tensorlens.journal.rows import NONE, BackwardRow, BackwardStartRow, DeadEndsRow
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.hidden_frames import is_ours
from tensorlens.tracer.isolation.muted_dispatch import unseen
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.isolation.stack_room import ROOM
from tensorlens.tracer.recording.graph_nodes import MAX_READS, is_leaf, node_of
from tensorlens.tracer.recording.reached_names import known_site
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors, version_of
from tensorlens.tracer.recording.tensor_text import short_values
from tensorlens.tracer.saved_tensors.failed_backward import (
    failed_backward_nodes,
    last_executed_node,
    nondifferentiable_nodes,
)
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, nodes_of
from tensorlens.tracer.saved_tensors.nonfinite_derivatives import NonfiniteNode, nonfinite_nodes, note_nonfinite

_Gradients = dict[int, tuple[object, int, int]]  # leaf -> values, id and version of its gradient
_Change = tuple[int, object, object, tuple[int, int, int] | None, int | None]
"""(leaf, values before, values after, (grad, version, version) or None, id of `.grad`)"""
_tokens = count()
_next_sequence = torch._C._autograd._get_sequence_nr


_EngineArguments = tuple[object, bool | None, bool, Sequence[object]]
"""The arguments of the engine after the roots: (gradients, `retain_graph`, `create_graph`, inputs)"""
_DEFAULTS: _EngineArguments = (None, False, False, ())


class _Pass(NamedTuple):
    """A backward pass that has begun."""

    token: int
    frame: FrameType
    site: int
    roots: list[torch.Tensor]
    accesses: list[int]  # (id, version) of each root, flat
    before: _Gradients
    args: _EngineArguments
    reached: set[int] | None  # the leaves below the roots, while the program has several threads
    nonfinite: list[NonfiniteNode]
    end_sample: Callable[[object, list[torch.Tensor], bool], None] | None  # in a run with `--reference`
    end_search: Callable[[], None] | None  # in a run with `--training`


def _engine(recorder: Recorder, engine: Function) -> Function:
    """Records `torch.autograd._engine_run_backward`. In a sampled run, passes that are not recorded count as well."""
    recording, sampling = _passes(recorder, engine), recorder.sampling
    if sampling is None:
        return recording

    def _engine_run_backward(*args: object, **kwargs: object) -> object:
        if not recorder.off:
            return recording(*args, **kwargs)
        result = engine(*args, **kwargs)
        sampling.pass_ended()
        return result

    return _engine_run_backward


@observe
def _passes(recorder: Recorder, engine: Function) -> Function:
    ended = _EndedPasses()
    push, pop = torch._C._push_on_torch_function_stack, torch._C._pop_torch_function_stack

    def _engine_run_backward(frame: FrameType, /, t_outputs: object, *args: object, **kwargs: object) -> object:
        if recorder.sampling is not None:
            frame = frame.f_back or frame  # the function around this one called
        reached = _next_sequence()
        begun = _begin(recorder, frame, t_outputs, args)
        failed, result = True, None
        recorder.passes.begin(begun.token, begun.reached)
        try:
            with ROOM:
                push(recorder.mode)
                try:
                    result = engine(t_outputs, *args, **kwargs)
                finally:
                    pop()
            failed = False
            if begun.nonfinite:
                with unseen():
                    note_nonfinite(recorder, begun.nonfinite, result, begun.reached)
            return result
        except BaseException as error:
            with unseen():
                _note_failure(recorder, error, begun, ended.freed_below())
            raise
        finally:
            recorder.passes.end(begun.token)
            recorder.sites.shared.pass_ends(begun.token)
            if begun.end_search is not None:
                begun.end_search()
            requested = _note_pass(recorder, begun, failed)
            ended.note(reached, bool(begun.args[1]))
            if begun.end_sample is not None:
                with unseen():
                    begun.end_sample(result, requested, failed)
            if recorder.sampling is not None and not failed:
                recorder.sampling.pass_ended()

    return _engine_run_backward


def _begin(recorder: Recorder, frame: FrameType, t_outputs: object, args: tuple[object, ...]) -> _Pass:
    """Reads what a pass may change, and writes the row of its beginning."""
    token = next(_tokens)
    roots: list[torch.Tensor] = []
    collect_tensors(t_outputs, roots)
    with unseen():
        accesses = recorder.accesses(roots)
        reached = _reached(recorder, roots) if recorder.sites.shared.has_several_threads else None
        before = _gradients(recorder, {}, reached)
        recorder.training.call_backward(accesses[::2])
        site = known_site(recorder.sites, frame)
        if site not in recorder.training.reached.looked:
            recorder.training.reached.look(frame, site)
        nonfinite: list[NonfiniteNode] = []
        if recorder.risky or recorder.saved_tensors.may_be_stale():
            with recorder.quiet():
                recorder.saved_tensors.note_stale(roots, frame)
                nonfinite = nonfinite_nodes(recorder, roots, frame)
        end_sample = None if recorder.samples is None else recorder.samples.start(roots)
        arguments: _EngineArguments = args[:4] if len(args) >= 4 else _DEFAULTS  # type: ignore[assignment]
        end_search = None if recorder.statistics is None else recorder.statistics.pass_begins(roots, arguments[3])
    recorder.rows.write(BackwardStartRow, token)
    if site == NONE:
        site = recorder.sites.site_or_outside(frame)
    recorder.sites.shared.pass_begins(token, site)
    return _Pass(token, frame, site, roots, accesses, before, arguments, reached, nonfinite, end_sample, end_search)


def _note_pass(recorder: Recorder, begun: _Pass, failed: bool) -> list[torch.Tensor]:
    """Writes the BACKWARD row of a pass that has ended. Returns the tensors whose gradients were requested."""
    _, retain, create, inputs = begun.args
    with unseen():
        changes = _changes(recorder, begun.before, begun.reached)
        if recorder.statistics is not None and not failed:
            recorder.statistics.pass_ended([change[0] for change in changes if change[2] is not None])
        requested: list[torch.Tensor] = []
        if inputs:
            collect_tensors(inputs, requested)
        numbers = tuple(map(recorder.tensor_ids.id_of, requested)) if requested else ()
        if not (retain or numbers or recorder.training.held.counts_steps):
            recorder.training.held.round_ends(by_step=False)
    called = begun.token, _op(begun.frame), begun.site, tuple(begun.accesses)
    recorder.rows.write(BackwardRow, *called, changes, numbers, bool(retain), bool(create), failed)
    return requested


class _EndedPasses:
    """Bounds the nodes that earlier passes can have freed: all were made before the last of these passes began."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self._bound = _next_sequence()  # there may have been passes before the recording

    def freed_below(self) -> int:
        """Returns a bound: only a node with a lower sequence number can have been freed by an earlier pass."""
        return self._bound if self._thread == get_ident() else LEAF_SEQUENCE  # each thread counts for itself

    def note(self, reached: int, retain: bool) -> None:
        """Notes the end of a pass. Nodes that were made before the pass began have sequence numbers below `reached`."""
        bound = self._bound if self._thread == get_ident() else LEAF_SEQUENCE
        self._bound = bound if retain or bound > reached else reached


def _note_failure(recorder: Recorder, error: BaseException, begun: _Pass, freed_below: int) -> None:
    """Writes the FAILURE row of a failed pass."""
    _, retain, _, inputs = begun.args
    requested: list[torch.Tensor] = []
    collect_tensors(inputs, requested)
    if len(requested) < len(inputs):
        requested = []  # some are edges of the graph: which nodes lead to these is not known
    saved = failed_backward_nodes(recorder, begun.roots, str(error), requested, freed_below)
    number = recorder.failures
    recorder.fail(error, _op(begun.frame), begun.accesses, begun.frame, saved)
    if recorder.failures > number:
        last = () if retain else last_executed_node(begun.roots)
        recorder.rows.write(DeadEndsRow, number, nondifferentiable_nodes(begun.roots), last)


def _op(frame: FrameType) -> str:
    """Returns the public function that was called: `autograd.grad`, `autograd.backward` or `Tensor.backward`."""
    if frame.f_code.co_name == "grad":
        return "autograd.grad"
    caller, of_tensor = frame.f_back, torch.Tensor.backward.__code__
    if caller is not None and caller.f_code is of_tensor:
        return "Tensor.backward"
    if caller is not None and is_ours(caller.f_code.co_filename):  # in a sampled run
        caller = caller.f_back
    called_by_tensor = caller is not None and caller.f_code is of_tensor
    return "Tensor.backward" if called_by_tensor else "autograd.backward"


def _gradients(recorder: Recorder, before: _Gradients, reached: set[int] | None) -> _Gradients:
    """Reads the gradient of every leaf that is alive and has one. Values come from `before` if they are still valid.

    Of the leaves that the pass does not reach, another thread may be changing the gradient: to read it could crash.
    """
    in_c = recorder.tensor_ids.in_c
    if in_c is not None and not recorder.sites.shared.has_several_threads:
        return in_c.gradients(recorder.leaves, before, short_values)
    leaves: list[tuple[int, torch.Tensor]] = []
    for number, ref in list(recorder.leaves.items()):
        tensor = ref()
        if tensor is None:
            recorder.leaves.pop(number, None)  # another thread may have removed it
        elif (reached is None or number in reached) and (tensor.is_leaf or tensor.retains_grad):
            leaves.append((number, tensor))
    found, unread = recorder.passes.read(leaves)
    gradients: _Gradients = {number: before[number] for number in unread if number in before}
    for number, gradient in found:
        known = before.get(number)
        mark = recorder.tensor_ids.id_of(gradient), version_of(gradient)
        gradients[number] = known if known is not None and known[1:] == mark else (short_values(gradient), *mark)
    return gradients


def _reached(recorder: Recorder, roots: list[torch.Tensor]) -> set[int] | None:
    """Returns the tensors that a pass from `roots` gives a gradient; None if the graph is too large to be read."""
    reached = {recorder.tensor_ids.id_of(root) for root in roots}
    nodes = list(islice(nodes_of(roots), MAX_READS + 1))
    for node in nodes:
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor):
            reached.add(recorder.tensor_ids.id_of(leaf))
    if len(nodes) > MAX_READS:
        return None
    below = set(nodes)
    for number, ref in list(recorder.leaves.items()):
        tensor = ref()
        if tensor is not None and not is_leaf(tensor) and node_of(tensor) in below:  # `retain_grad`
            reached.add(number)
    return reached


def _changes(recorder: Recorder, before: _Gradients, reached: set[int] | None) -> tuple[_Change, ...]:
    """Returns the gradients that a pass made or changed."""
    in_c = recorder.tensor_ids.in_c
    if in_c is not None and not recorder.sites.shared.has_several_threads:
        return in_c.changes(recorder.leaves, before, short_values)
    after = _gradients(recorder, before, reached)
    gone = [number for number in before if number not in after and number in recorder.leaves]
    changes: list[_Change] = [(number, before[number][0], None, None, None) for number in gone]
    for number, (values, grad, version) in after.items():
        old_values, old_grad, old_version = before.get(number, (None, NONE, NONE))
        if (grad, version) == (old_grad, old_version):
            continue
        write = (grad, old_version, version) if grad == old_grad and version > old_version else None
        changes.append((number, old_values, values, write, grad))
    return tuple(changes)


PATCHES = (Patch(torch.autograd, "_engine_run_backward", _engine),)
