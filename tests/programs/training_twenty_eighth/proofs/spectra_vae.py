import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("self.state = model.state_dict().copy()", "self.state = {k: v.clone() for k, v in model.state_dict().items()}")


def kept(*edits):
    p = run("spectra_vae", *edits)
    value = p["validate"](p["model"], p["valid"], p["eps"])
    shared = [a.data_ptr() == b.data_ptr() for a, b in zip(p["keeper"].state.values(), p["model"].state_dict().values())]
    return value, p["keeper"].value, p["keeper"].epoch, shared


value, best, epoch, shared = kept()
print(value, best, epoch, shared)
assert all(shared) and value > best + 1.0
value, best, epoch, shared = kept(fix)
print(value, best, epoch, shared)
assert not any(shared) and abs(value - best) < 1e-4
