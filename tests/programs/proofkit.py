"""Helpers for the proofs of each set: they run a program, with edits if asked, and look at what it left behind."""
import contextlib
import io
import os
import sys

SET = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))  # a proof is started as SET/proofs/NAME.py


class Result(dict):
    """Globals of the run script; `.locals[name]` holds the locals of a captured function at its last return."""

    def __init__(self):
        super().__init__()
        self.locals = {}
        self.output = ""


def run(name, *edits, capture=(), inject=None, as_main=True, folder="wrong"):
    path = os.path.join(SET, folder, name + ".py")
    source = open(path).read()
    for old, new in edits:
        assert old in source, f"edit not applicable: {old!r}"
        source = source.replace(old, new)
    result = Result()
    result.update({"__name__": "__main__" if as_main else "program", "__file__": path})
    result.update(inject or {})
    label = f"<{name}#{len(edits)}>"
    code = compile(source, label, "exec")

    def profile(frame, event, arg):
        if event == "return" and frame.f_code.co_filename == label and frame.f_code.co_name in capture:
            result.locals[frame.f_code.co_name] = dict(frame.f_locals)

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        if capture:
            sys.setprofile(profile)
        try:
            exec(code, result)
        finally:
            sys.setprofile(None)
    result.output = out.getvalue()
    return result


def in_optimizer(param, *optimizers):
    return any(param is p for o in optimizers for g in o.param_groups for p in g["params"])


def rel(a, b):
    return ((a - b).norm() / b.norm().clamp(min=1e-12)).item()


def flat_grad(module):
    import torch

    return torch.cat([p.grad.flatten() for p in module.parameters() if p.grad is not None])


def flat(module):
    import torch

    return torch.cat([p.detach().flatten() for p in module.parameters()])
