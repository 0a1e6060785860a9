import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

FIX = ("model.children()", "model.modules()")
OFF = ("strength=5e-3", "strength=0.0")
end = [flat(run("ortho_digits", *e)["model"]) for e in ([], [OFF], [FIX], [FIX, OFF])]
assert torch.equal(end[0], end[1]) and torch.equal(end[0], end[3])
assert not torch.allclose(end[2], end[3], atol=1e-2)
r = run("ortho_digits")
assert not torch.is_tensor(r["orthogonality"](r["model"]))
print("proved: ortho_digits")
