"""Runs programs and records the gradients that each uses. Imports nothing of the lens, which it judges.

Run as a program, this module imports torch once, reads one JSON request per line, and runs each script in a fork:
`script` (its folder is the working directory), `out` (the file for the record), `copies` (whether autograd keeps copies
of what it saves), `results` (names of functions whose returned tensors are recorded). It answers with one JSON line.
"""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import signal
import sys
import tempfile
import traceback
from typing import Any

import torch
from torch._C import _functorch as functorch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

SECONDS = 60


class Record:
    """Holds what one run used: the gradients at each step, and at each backward where it has no optimizer of torch."""

    def __init__(self) -> None:
        self.optimizers: dict[int, int] = {}  # id: the number of its creation
        self.kept: list[Optimizer] = []
        self.steps: list[tuple[int, list[torch.Tensor | None]]] = []
        self.passes: list[list[tuple[torch.Tensor, torch.Tensor | None]]] = []
        self.returned: dict[str, list[list[torch.Tensor]]] = {}
        self.modules: list[torch.nn.Module] = []
        self.depth = 0

    def as_dict(self) -> dict[str, Any]:
        tensors = [
            tensor
            for module in self.modules
            for tensor in (*module._parameters.values(), *module._buffers.values())
            if tensor is not None and not torch.nn.parameter.is_lazy(tensor)
        ]
        distinct = list({id(tensor): tensor for tensor in tensors}.values())
        places = {
            id(param): (number, position)
            for number, optimizer in enumerate(self.kept)
            for position, param in enumerate(_params(optimizer))
        }
        return {
            "steps": self.steps,
            "passes": self.passes,
            "returned": self.returned,
            "left": [_copy(tensor) for tensor in distinct],
            "trained": [places.get(id(tensor)) for tensor in distinct],  # the optimizer, and the place in its steps
        }


def _copy(tensor: torch.Tensor | None) -> torch.Tensor | None:
    if tensor is None:
        return None
    whole = tensor.detach()
    copied = (whole.to_dense() if whole.layout != torch.strided else whole).cpu().clone()
    while functorch.is_functorch_wrapped_tensor(copied):  # inside `torch.func.grad` or `vmap`
        copied = functorch.get_unwrapped(copied)
    return copied


def watch_optimizers(record: Record) -> None:
    """Records the gradient of every parameter when a step reads it: before the step, or after each of its closures."""
    begin = Optimizer.__init__

    def numbered(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        if id(self) not in record.optimizers:
            record.optimizers[id(self)] = len(record.kept)
            record.kept.append(self)
        begin(self, *args, **kwargs)

    def before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        closure = kwargs.get("closure") or next((arg for arg in args[1:] if callable(arg)), None)
        if closure is None:
            _note_step(record, optimizer)
            return None

        def observed() -> Any:
            loss = closure()
            _note_step(record, optimizer)
            return loss

        return (args[:1], {**kwargs, "closure": observed})

    Optimizer.__init__ = numbered  # type: ignore[method-assign]
    register_optimizer_step_pre_hook(before_step)


def _note_step(record: Record, optimizer: Optimizer) -> None:
    gradients = [_copy(param.grad) for param in _params(optimizer)]
    record.steps.append((record.optimizers[id(optimizer)], gradients))


def _params(optimizer: Optimizer) -> list[torch.Tensor]:
    groups = getattr(optimizer, "param_groups", [])  # its constructor may have failed
    return [param for group in groups for param in group["params"]]


def watch_passes(record: Record) -> None:
    """Records, for each backward pass of the script, the value and gradient of every leaf that it reached."""
    backward, grad = torch.autograd.backward, torch.autograd.grad

    def observed_backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
        leaves = [] if record.depth else _leaves(tensors)
        record.depth += 1
        try:
            backward(tensors, *args, **kwargs)
        finally:
            record.depth -= 1
        if not record.depth:
            pairs = ((_copy(leaf), _copy(leaf.grad)) for leaf in leaves)
            record.passes.append([(value, found) for value, found in pairs if value is not None])

    def observed_grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        record.depth += 1
        try:
            found = grad(outputs, inputs, *args, **kwargs)
        finally:
            record.depth -= 1
        if not record.depth:
            asked = [inputs] if isinstance(inputs, torch.Tensor) else list(inputs)
            pairs = ((_copy(leaf), _copy(value)) for leaf, value in zip(asked, found, strict=True))
            record.passes.append([(value, result) for value, result in pairs if value is not None])
        return found

    torch.autograd.backward = observed_backward
    torch.autograd.grad = observed_grad


def _leaves(tensors: Any) -> list[torch.Tensor]:
    """Returns the leaves that tensors were computed from, in the order in which a search meets them."""
    roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    leaves, seen = [root for root in roots if root.grad_fn is None and root.requires_grad], set(waiting)
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        for before, _ in node.next_functions:
            if before is not None and before not in seen:
                seen.add(before)
                waiting.append(before)
    return leaves


def watch_modules(record: Record) -> None:
    """Keeps every module that is made or copied: the values that it has at the end show writes that were dropped."""
    Module = torch.nn.Module
    begin, restore = Module.__init__, Module.__setstate__

    def made(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        record.modules.append(self)

    def copied(self: torch.nn.Module, state: Any) -> None:
        restore(self, state)  # type: ignore[no-untyped-call]
        record.modules.append(self)

    Module.__init__, Module.__setstate__ = made, copied  # type: ignore[method-assign]


def watch_results(record: Record, names: list[str]) -> None:
    """Records the tensors that functions with these names return."""

    def profile(frame: Any, event: str, value: Any) -> None:
        if event == "return" and frame.f_code.co_name in names:
            tensors = value if isinstance(value, (tuple, list)) else [value]
            found = [copied for tensor in tensors if (copied := _copy_if_tensor(tensor)) is not None]
            record.returned.setdefault(frame.f_code.co_name, []).append(found)

    sys.setprofile(profile)


def _copy_if_tensor(value: Any) -> torch.Tensor | None:
    return _copy(value) if isinstance(value, torch.Tensor) else None


def run(request: dict[str, Any]) -> None:
    """Runs the script of a request as `python SCRIPT` does, and writes the record of it, also if it fails."""
    script = os.path.abspath(request["script"])
    os.chdir(os.path.dirname(script))
    sys.argv, sys.path[0] = [script], os.path.dirname(script)
    torch.manual_seed(0)  # two versions of a program that does not seed draw the same numbers
    random.seed(0)
    record = Record()
    watch_optimizers(record)
    watch_passes(record)
    watch_modules(record)
    if request.get("results"):
        watch_results(record, request["results"])
    keep = torch.autograd.graph.saved_tensors_hooks(lambda saved: saved.detach().clone(), lambda saved: saved)
    try:
        if request.get("copies"):
            with keep:
                runpy.run_path(script, run_name="__main__")
        else:
            runpy.run_path(script, run_name="__main__")
    finally:
        sys.setprofile(None)
        torch.save(record.as_dict(), request["out"])


def serve() -> None:
    import torch._dynamo  # noqa: F401 - an optimizer's first step imports it

    gc.collect()
    for line in sys.stdin:
        print(json.dumps(_in_fork(json.loads(line))), flush=True)


def _in_fork(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _become(request, out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    return {"status": os.waitstatus_to_exitcode(status), "printed": texts[0], "error": texts[1]}


def _become(request: dict[str, Any], out: int, err: int) -> None:
    """Turns this fork into the process that runs the script; never returns."""
    signal.alarm(SECONDS)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    status = 0
    try:
        run(request)
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 0 if leave.code is None else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
    os._exit(0)  # torch takes seconds to leave a busy machine
