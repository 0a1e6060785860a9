import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer
import torch
FIX = [("self.shift = nn.Parameter(-x.mean(0))", "self.shift.copy_(-x.mean(0))"),
       ("self.log_scale = nn.Parameter(-torch.log(x.std(0) + 1e-6))", "self.log_scale.copy_(-torch.log(x.std(0) + 1e-6))")]
w, f = run("flow_particles"), run("flow_particles", *FIX)
for r, there in ((w, False), (f, True)):
    affine = [m for m in r["flow"].layers if type(m).__name__ == "Affine"]
    assert all(in_optimizer(p, r["trainer"].opt) == there for m in affine for p in m.parameters())
# the values of the first affine equal those of a first-batch calibration in the wrong run only
pick = torch.randint(0, 2000, (96,), generator=torch.Generator().manual_seed(0))
first = -w["train"][pick].mean(0)
assert torch.equal(w["flow"].layers[0].shift.detach(), first)
assert (f["flow"].layers[0].shift.detach() - first).abs().max() > 1e-2
assert w["flow"].layers[0].shift.grad.abs().max() > 0
print(w.output, f.output)
