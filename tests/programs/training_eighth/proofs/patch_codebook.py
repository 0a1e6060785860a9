import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
w = run("patch_codebook")
f = run("patch_codebook", ("            z_q = self.codebook(index)", "        z_q = self.codebook(index)"))
a, b = w["model"].quantizer.codebook.weight, f["model"].quantizer.codebook.weight
print(w.output, f.output)
assert a.grad is None and torch.equal(a, w["first_table"])
assert b.grad is not None and (b - f["first_table"]).norm() > 0.5
assert f["err"] < 0.9 * w["err"]
