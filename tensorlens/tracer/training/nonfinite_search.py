"""Searches a second run for the operation that makes the first infinity or NaN: of a loss, or of a gradient that a step
uses.

A mode below the recorder's looks at what each call returns or changes. Where that is not finite, its memory is given
an origin: the first call that made it so from finite values, or NaN from infinities. A value that the script gives
itself, such as the `-inf` of a mask, is an origin of its own, which only counts if it gets to the loss. In a backward
pass, hooks find the first node that gets a finite gradient and passes another one on. Nothing is searched any more once
the first loss or gradient is explained.
"""

from __future__ import annotations

import functools
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from itertools import count
from types import FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tensorlens.records.training import FirstNonfinite
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.isolation.patch import Patch, observe, patched
from tensorlens.tracer.isolation.torch_originals import clone, detach, isnan, some, untyped_storage
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors
from tensorlens.tracer.training.nonfinite_origin import (
    NAN,
    Origin,
    Origins,
    earliest,
    is_elementwise,
    nonfinite_numbers,
    operands,
    own_elements,
    place_in,
    plain_numbers,
)
from tensorlens.tracer.training.nonfinite_passes import SearchedPasses
from tensorlens.tracer.training.nonfinite_seen import is_finite, is_float

MOST_NODES = 200_000  # calls whose nodes are known
_next_sequence = torch._C._autograd._get_sequence_nr
Called = tuple[str, FrameType]  # the name of a function, and the frame that called it


@dataclass(frozen=True, slots=True)
class _Input:
    """A tensor that a call is given, with its version and its values before the call."""

    tensor: torch.Tensor
    version: int
    value: torch.Tensor


@contextmanager
def nonfinite_searched(recorder: Recorder) -> Iterator[None]:
    """Searches while this lasts. To be entered after the recorder's own patches and before the recorder."""
    search = NonfiniteSearch(recorder)
    if recorder.statistics is not None:
        search.counts = recorder.statistics.search_nonfinite(search)
    with patched(PATCHES, search), search:
        yield


class NonfiniteSearch(TorchFunctionMode):
    """The mode that looks at each call, and what explains the first loss or gradient."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.origins = Origins()
        self._order = count(1)
        self.is_done = False
        self.passes = SearchedPasses(recorder, self.origins, self._new, self._place_of_node)
        self._guard = ErrorGuard(recorder, "the search for the first NaN")
        self.counts: Callable[[], tuple[int, int]] = lambda: (0, 0)  # passes that have begun, steps
        self._nodes: list[tuple[int, int, str, int | None]] = []  # (end, first, op, site) of the nodes of a call
        self.site: int | None = None  # of the last backward pass

    @property
    def paused(self) -> bool:
        return self.recorder.paused or self.is_done

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None) -> None:
        self.recorder.internal_error(what, error, frame)

    def __torch_function__(self, func: Function, types: object, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        kwargs = kwargs or {}
        called = ops.name_of(func), sys._getframe(1)
        if self.paused or func in ops.QUIET or called[0].endswith(".__get__"):
            return func(*args, **kwargs)
        return self.call(called, func, args, kwargs)

    def call(self, called: Called, func: Function, args: Args, kwargs: Kwargs) -> Any:
        """Calls a function, and looks at what it returns and changes."""
        inputs: list[_Input] = []
        with self._guard, torch._C.DisableTorchFunction():
            inputs = self._inputs(called[0], args, kwargs)
        begins, first = next(self._order), _next_sequence()
        result = func(*args, **kwargs)
        with self._guard, torch._C.DisableTorchFunction(), MutedDispatch(), self.recorder.quiet(), torch.no_grad():
            self._note_nodes(called, first)
            for tensor in _outputs(result, inputs):
                self._look(called, tensor, inputs, begins, (args, kwargs))
        return result

    def _note_nodes(self, called: Called, first: int) -> None:
        """Remembers which call made the nodes since `first`."""
        end = _next_sequence()
        if end > first:
            self._nodes.append((end, first, called[0], self.recorder.sites.site_or_outside(called[1])))
            if len(self._nodes) > MOST_NODES:
                del self._nodes[: MOST_NODES // 2]

    def _place_of_node(self, sequence: int) -> tuple[str, int | None] | None:
        """Returns the operation and the site of the call that made a node."""
        place = bisect_right(self._nodes, (sequence, 2**64))
        for _, first, op, site in self._nodes[place : place + 1]:
            if first <= sequence:
                return op, site
        return None

    def _inputs(self, name: str, args: Args, kwargs: Kwargs) -> list[_Input]:
        """Returns the tensors among the arguments, with copies of those that the call may change."""
        tensors: list[torch.Tensor] = []
        collect_tensors(args, tensors)
        collect_tensors(kwargs, tensors)
        if not _may_write(name, kwargs):
            return [_Input(tensor, _version(tensor), tensor) for tensor in tensors]
        with MutedDispatch(), self.recorder.quiet(), torch.no_grad():
            return [_Input(each, _version(each), clone(detach(each)) if is_float(each) else each) for each in tensors]

    def _look(
        self, called: Called, result: torch.Tensor, inputs: list[_Input], begins: int, given: tuple[Args, Kwargs]
    ) -> None:
        """Finds the origin of what is not finite in a result."""
        result = detach(result)
        if is_finite(result):
            self.origins.forget(result)
            return
        known = self.origins.of(result)
        if known is None or known.order < begins:  # else something inside the call has made it
            self.origins.put(result, self._origin(called, result, inputs, given))

    def _origin(self, called: Called, result: torch.Tensor, inputs: list[_Input], given: tuple[Args, Kwargs]) -> Origin:
        """Returns the origin of what is not finite in a result."""
        values = [detach(each.value) for each in inputs]
        odd = [each for each in inputs if is_float(each.value) and not is_finite(each.value)]
        has_nan, numbers = bool(some(isnan(result))), nonfinite_numbers(given)
        if not odd:
            kind = "constant" if numbers and (NAN in numbers or not has_nan) else "forward" if values else "data"
            return self._made(kind, called, result, values + plain_numbers(called[0], given[0], values))
        if is_elementwise(called[0]) and not numbers:
            own = own_elements(result, values)
            if bool(some(own)):
                return self._made("forward", called, result, values + plain_numbers(called[0], given[0], values), own)
        causes = [self._source(called, each) for each in odd]
        nan = [cause for cause, each in zip(causes, odd, strict=True) if bool(some(isnan(each.value)))]
        cause = earliest(nan if has_nan and nan else causes)
        if not has_nan or nan:
            return cause
        if cause.fact.kind in ("constant", "data", "unknown"):  # it makes NaN of infinities that are given
            made = self._made("forward", called, result, values)
            site = None if cause.fact.kind == "unknown" else cause.fact.site
            return replace(made, fact=replace(made.fact, given_site=site))
        site = self.recorder.sites.site_or_outside(called[1])
        return replace(cause, fact=replace(cause.fact, then_op=called[0], then_site=site))

    def _source(self, called: Called, given: _Input) -> Origin:
        known = self.origins.of(given.tensor)
        return self._made("unknown", called, detach(given.value), ()) if known is None else known

    def _made(
        self,
        kind: str,
        called: Called,
        result: torch.Tensor,
        values: Sequence[torch.Tensor],
        own: torch.Tensor | None = None,
    ) -> Origin:
        fields = place_in(result, own)
        if kind == "forward":
            fields |= operands(called[0], result, values, fields["position"])
        site = self.recorder.sites.site_or_outside(called[1])
        return self._new(FirstNonfinite(0, kind, op=called[0], site=site, **fields))

    def _new(self, fact: FirstNonfinite) -> Origin:
        passes, steps = self.counts()
        within = self.recorder.within
        return Origin(next(self._order), replace(fact, passes=passes, steps=steps, within=within))

    # --- what the recorder and the engine ask -------------------------------------------------------------------------

    def pass_begins(self, roots: Sequence[torch.Tensor]) -> Callable[[], None] | None:
        return None if self.is_done else self.passes.begin(roots)

    def explain_loss(self, root: torch.Tensor, counts: tuple[int, int]) -> None:
        """Writes where the infinity or NaN of a loss comes from."""
        self._explanation(self.origins.of(root), counts)()

    def explain_gradient(self, leaf: int, gradient: torch.Tensor, counts: tuple[int, int]) -> Callable[[], None]:
        """Returns what writes where the infinity or NaN of a leaf's gradient comes from."""
        return self._explanation(self.passes.of_leaf(leaf) or self.origins.of(gradient), counts)

    def _explanation(self, origin: Origin | None, counts: tuple[int, int]) -> Callable[[], None]:
        none = FirstNonfinite(0, "", "no recorded operation makes it", passes=counts[0], steps=counts[1])
        fact = replace(none if origin is None else origin.fact, seen_site=self.site)

        def write() -> None:
            self.recorder.rows.write_fact(FirstNonfinite, *astuple(fact)[1:])
            self.is_done = True
            self.origins.clear()
            self._nodes.clear()

        return write

    @contextmanager
    def on_stack(self) -> Iterator[None]:
        """Pushes the mode unless it is on the stack: PyTorch takes modes off while it runs what they have passed on."""
        depth = torch._C._len_torch_function_stack()
        if any(torch._C._get_function_stack_at(place) is self for place in range(depth)):
            yield
            return
        with self:
            yield


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _may_have_changed(given: _Input) -> bool:
    """Returns whether a call may have changed an input; a tensor without a version counts if it has been copied."""
    return _version(given.tensor) != given.version or (given.version < 0 and given.value is not given.tensor)


def _may_write(name: str, kwargs: Kwargs) -> bool:
    plain = name.rpartition(".")[2]
    in_place = plain.endswith("_") and not plain.endswith("__")
    return in_place or plain.startswith(("__i", "__setitem__", "_foreach", "_fused")) or "out" in kwargs or (
        bool(kwargs.get("inplace"))
    )  # fmt: skip


def _outputs(result: object, inputs: Sequence[_Input]) -> Iterator[torch.Tensor]:
    """Yields the tensors that a call changed, and those that it made on memory of their own."""
    given = [each.tensor for each in inputs if is_float(each.tensor)]
    yield from (each.tensor for each in inputs if _may_have_changed(each) and is_float(each.tensor))
    made: list[torch.Tensor] = []
    collect_tensors(result, made)
    floats = [tensor for tensor in made if is_float(tensor)]
    memory = {untyped_storage(tensor)._cdata for tensor in given} if floats else set()
    yield from (tensor for tensor in floats if untyped_storage(tensor)._cdata not in memory)


@observe
def _engine(search: NonfiniteSearch, engine: Function) -> Function:
    """Looks at the calls of hooks and custom Functions in a pass, and at the gradients that `autograd.grad` returns."""

    def _engine_run_backward(frame: FrameType, /, *args: object, **kwargs: object) -> object:
        with ErrorGuard(search, "a pass"):
            search.site = search.recorder.sites.site_or_outside(frame)
        with search.on_stack():
            result: object = engine(*args, **kwargs)
        with ErrorGuard(search, "gradients"), torch._C.DisableTorchFunction(), MutedDispatch(), search.recorder.quiet():
            returned: list[torch.Tensor] = []
            collect_tensors(result, returned)
            search.passes.note_returned([each for each in returned if is_float(each)])
        return result

    return _engine_run_backward


def _unseen(name: str) -> Callable[[NonfiniteSearch, Function], Function]:
    """Looks at a function that no mode sees."""

    @observe
    def wrap(search: NonfiniteSearch, original: Function) -> Function:
        def call(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            return search.call((name, frame), original, args, kwargs)

        return call

    return wrap


@observe
def _apply(search: NonfiniteSearch, original: Function) -> Function:
    """Looks at what a custom Function returns: its `forward` may compute without torch."""

    def apply(frame: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        return search.call((f"{cls.__name__}.apply", frame), functools.partial(original, cls), args, kwargs)

    return apply


PATCHES = (
    Patch(torch.autograd, "_engine_run_backward", _engine),
    Patch(torch.autograd.graph, "_engine_run_backward", _engine),
    Patch(torch, "from_numpy", _unseen("torch.from_numpy")),
    Patch(torch, "frombuffer", _unseen("torch.frombuffer")),
    Patch(torch.autograd.Function, "apply", _apply),
)
