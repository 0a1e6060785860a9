"""Finds the call that failed when Python code of a library raised, not a torch function: its name and its tensors.

Both are read from the frame that the user's line called.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FrameType, TracebackType

import torch

from tensorlens.tracer.frames.call_sites import Sites
from tensorlens.tracer.isolation.hidden_frames import folder_names, is_ours
from tensorlens.tracer.isolation.module_tree import Parts, parameters_of, reachable_tensors

_TORCH = folder_names(Path(torch.__file__).parent)
_CALLS = ("_wrapped_call_impl", "_call_impl")
MAX_TENSORS = 500


def failing_call(sites: Sites, traceback: TracebackType | None) -> tuple[str, list[torch.Tensor]]:
    """Returns (name, tensors) of the library function that the user's innermost line called.

    Only functions of PyTorch have a name. If the user's own code raised, returns ("", []).
    """
    frames = _library_frames(sites, traceback)
    for frame in frames:
        tensors = arguments_of(frame)
        name = _name(frame)
        if name:
            return name, tensors or next(filter(None, map(arguments_of, frames)), [])
    return "", next(filter(None, map(arguments_of, frames)), [])


def named_arguments(sites: Sites, traceback: TracebackType | None) -> list[tuple[str, torch.Tensor]]:
    """Returns (parameter, tensor) of what the user's innermost line passed to a Python function of PyTorch."""
    for frame in _library_frames(sites, traceback):
        if _name(frame):
            shown = inspect.getargvalues(frame)
            pairs = [(name, shown.locals.get(name)) for name in shown.args]
            return [(name, value) for name, value in pairs if isinstance(value, torch.Tensor)]
    return []


def _library_frames(sites: Sites, traceback: TracebackType | None) -> list[FrameType]:
    """Returns the frames of a traceback below the user's innermost line, the outermost first."""
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
    """Returns `GradScaler.step`, `Module.__setattr__` or `clip_grad_norm_`; "" for private and other functions."""
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


def _values(frame: FrameType) -> list[object]:
    """Returns the arguments of a running function, as its parameters are now."""
    shown = inspect.getargvalues(frame)
    values = [shown.locals[name] for name in shown.args if name in shown.locals]
    values += shown.locals.get(shown.varargs, ()) if shown.varargs else ()
    return values + list(shown.locals.get(shown.keywords, {}).values() if shown.keywords else ())


def arguments_of(frame: FrameType) -> list[torch.Tensor]:
    """Returns the tensors that a function received: as arguments, in containers, in a module or an optimizer."""
    return [tensor for value in _values(frame) for tensor in tensors_in(value)][:MAX_TENSORS]


def tensors_in(value: object) -> list[torch.Tensor]:
    """Returns the tensors of a value and the parameters of modules and optimizers in it, running no user code."""
    return [tensor for _, tensor in reachable_tensors(value, 3, None, _parameters, _parameter_groups)]


def _parameters(path: str, module: torch.nn.Module) -> Parts:
    return ((path, parameter) for parameter in parameters_of(module))


def _parameter_groups(value: object) -> Parts:
    groups = vars(value).get("param_groups", ()) if isinstance(value, torch.optim.Optimizer) else ()
    return [("", group["params"]) for group in groups]
