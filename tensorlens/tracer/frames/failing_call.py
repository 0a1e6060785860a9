"""Which call refused, where Python code of a library raised and not a torch function: the frame that the user's line
called says its name, and its arguments are the tensors that it was given."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch

from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.hidden_frames import folder_names, is_ours
from tensorlens.tracer.isolation.module_tree import parameters_of

_TORCH = folder_names(Path(torch.__file__).parent)
_CALLS = ("_wrapped_call_impl", "_call_impl")
MAX_TENSORS = 500


def failing_call(sites: Sites, traceback: TracebackType | None) -> tuple[str, list[torch.Tensor]]:
    """(name of the library function that the user's innermost line called, its tensors); ("", []) where the user's own
    code raised. Only functions of torch have a name here."""
    frames = _library_frames(sites, traceback)
    for frame in frames:
        tensors = arguments_of(frame)
        name = _name(frame)
        if name:
            return name, tensors or next(filter(None, map(arguments_of, frames)), [])
    return "", next(filter(None, map(arguments_of, frames)), [])


def named_arguments(sites: Sites, traceback: TracebackType | None) -> list[tuple[str, torch.Tensor]]:
    """(parameter, tensor) of the tensors that the user's innermost line gave to a Python function of torch."""
    for frame in _library_frames(sites, traceback):
        if _name(frame):
            shown = inspect.getargvalues(frame)
            pairs = [(name, shown.locals.get(name)) for name in shown.args]
            return [(name, value) for name, value in pairs if isinstance(value, torch.Tensor)]
    return []


def _library_frames(sites: Sites, traceback: TracebackType | None) -> list[FrameType]:
    """The frames of a traceback below the user's innermost line, the outermost first."""
    frames: list[FrameType] = []
    while traceback is not None:
        frame = traceback.tb_frame
        if sites.is_user(frame.f_code.co_filename):
            frames = []
        elif not is_ours(frame.f_code.co_filename):
            frames.append(frame)
        traceback = traceback.tb_next
    return frames


def _name(frame: FrameType) -> str:
    """`GradScaler.step`, `Module.__setattr__`, `clip_grad_norm_`; "" for inner functions and what is not torch's."""
    code = frame.f_code
    if not code.co_filename.startswith(_TORCH):
        return ""
    owner = next(iter(_values(frame)), None)
    if code.co_name in _CALLS:
        return f"{type(owner).__name__}.forward"
    if "<locals>" in code.co_qualname or (code.co_name.startswith("_") and not code.co_name.endswith("__")):
        return ""
    module = str(frame.f_globals.get("__name__"))
    return f"autograd.{code.co_qualname}" if module == torch.autograd.__name__ else code.co_qualname


def _values(frame: FrameType) -> list[Any]:
    """The arguments of a running function, as its parameters hold them now."""
    shown = inspect.getargvalues(frame)
    values = [shown.locals[name] for name in shown.args if name in shown.locals]
    values += shown.locals.get(shown.varargs, ()) if shown.varargs else ()
    return values + list(shown.locals.get(shown.keywords, {}).values() if shown.keywords else ())


def arguments_of(frame: FrameType) -> list[torch.Tensor]:
    """The tensors that a function was given: themselves, in containers, as a module's or an optimizer's parameters."""
    found: list[torch.Tensor] = []
    for value in _values(frame):
        tensors_in(value, found)
    return found[:MAX_TENSORS]


def tensors_in(value: Any, found: list[torch.Tensor], depth: int = 3) -> None:
    """Append the tensors of `value` to `found`, without running a line of the user's code."""
    if isinstance(value, torch.Tensor):
        found.append(value)
    elif isinstance(value, torch.nn.Module):
        found.extend(parameters_of(value))
    elif isinstance(value, torch.optim.Optimizer):
        tensors_in([group["params"] for group in vars(value).get("param_groups", ())], found, depth)
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            tensors_in(item, found, depth - 1)
    elif depth and isinstance(value, dict):
        for item in value.values():
            tensors_in(item, found, depth - 1)
