"""The compiled fast path walks frames as Python does, and keeps nothing of them."""

from __future__ import annotations

import ctypes
import functools
import sys
from types import FrameType
from typing import Any

import pytest
import torch

from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.frames.code_between_calls import place_of
from tensorlens.tracer.recording import compiled
from tensorlens.tracer.recording.reached_names import known_site
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.unsaved_storage import UnsavedStorage
from tensorlens.tracer.saved_tensors.watched_storage import WatchedStorage

pytestmark = pytest.mark.skipif(compiled.FastPath is None, reason="the fast path was not compiled")


def answers(recorder: Recorder, frame: FrameType) -> tuple[object, ...]:
    return place_of(recorder.sites, frame), recorder.sites.site_of(frame), known_site(recorder.sites, frame)


def both(recorder: Recorder, frame: FrameType) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Returns the answers of the compiled path and of Python."""
    in_c, sites = answers(recorder, frame), recorder.sites
    assert sites.compiled is not None
    sites.compiled, of_c = None, sites.compiled
    in_python = answers(recorder, frame)
    sites.compiled = of_c
    return in_c, in_python


def outer(inner: Any) -> Any:
    return functools.reduce(lambda _, each: inner(each), [1, 2])


def test_places_and_sites_are_those_that_python_finds() -> None:
    recorder = new_recorder((__file__,))
    found: list[tuple[tuple[object, ...], tuple[object, ...]]] = []

    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found.extend(both(recorder, sys._getframe(depth)) for depth in range(8))  # PyTorch's frames are between
            return x

    layer = Layer()
    with recorder:
        for _ in range(2):  # Python meets new code, C knows it afterwards
            outer(layer)
    assert all(in_c == in_python for in_c, in_python in found)
    assert len({in_c for in_c, _ in found}) > 3
    recorder.close()


def test_no_frame_has_no_place_and_no_site() -> None:
    recorder = new_recorder((__file__,))
    in_c, in_python = both(recorder, None)  # type: ignore[arg-type]
    assert in_c == in_python
    assert in_c[0] == ()
    recorder.close()


def test_code_of_a_library_that_gets_a_site_is_followed_from_then_on() -> None:
    recorder = new_recorder((__file__,))
    seen: list[tuple[tuple[object, ...], tuple[object, ...]]] = []

    def inner(_: object) -> None:
        library = sys._getframe(1)
        seen.append(both(recorder, library))
        recorder.sites.definition(library.f_code)
        seen.append(both(recorder, library))

    class Layer(torch.nn.Module):
        def forward(self, x: object) -> None:
            inner(x)

    layer = Layer()
    layer._forward_pre_hooks[0] = lambda _, args: inner(args)
    with recorder:
        layer(1)
    assert all(in_c == in_python for in_c, in_python in seen)
    recorder.close()


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_bytes_are_compared_as_in_python(size: int) -> None:
    buffer = ctypes.create_string_buffer(bytes(range(256)) * 4, 1024)
    for contents in (buffer.raw[:size], bytes(size), buffer.raw[:size] + b"x"):
        in_c = compiled.has_bytes(ctypes.addressof(buffer), contents)
        assert in_c == compiled._has_bytes(ctypes.addressof(buffer), contents)


def test_no_reference_is_lost_or_kept() -> None:
    recorder = new_recorder((__file__,))
    in_c, frame = recorder.sites.compiled, sys._getframe()
    assert in_c is not None
    x, contents = torch.ones(4), bytes(16)

    def ask() -> None:
        for _ in range(20_000):
            in_c.site(frame)
            in_c.place(frame)
            compiled.has_bytes(x.data_ptr(), contents)

    recorder.sites.site_of(frame)
    place_of(recorder.sites, frame)
    ask()
    references, blocks = sys.getrefcount(frame.f_code), sys.getallocatedblocks()
    ask()
    left, more = (
        sys.getrefcount(frame.f_code),
        sys.getallocatedblocks() - blocks,
    )
    assert left == references
    assert more < 100
    recorder.close()


def test_memory_behind_data_is_read_once_a_node_may_have_saved_it() -> None:
    x = torch.nn.Parameter(torch.ones(3))
    recorder = new_recorder((__file__,))
    with recorder:
        (x * 1).sum()  # so that the tensor is known
        alias = x.data
        (before,) = recorder.watched.values()
        y = x.exp() * x
        (after,) = recorder.watched.values()
        assert type(before) is UnsavedStorage
        assert type(after) is WatchedStorage
        assert after.contents == alias.numpy().tobytes()
    del y
    recorder.close()
