import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch

w = run("clone_surgeon")
f = run("clone_surgeon", ("torch.full((act,), -1.5)", "torch.full((act,), -0.5)"))
pw, pf = w["policy"], f["policy"]
assert torch.equal(pw.log_std.detach(), torch.full((3,), -1.5))
assert pw.log_std.grad is not None and pw.log_std.grad.abs().max() == 0
assert pw.mean.weight.grad.abs().max() > 0
assert (pf.log_std.detach().exp() / f["expert"].spread - 1).abs().max() < 0.15
assert (pw.log_std.detach().clamp(-1, 1).exp() / w["expert"].spread - 1).abs().max() > 0.5
print(w["nll"], f["nll"])
assert w["nll"] > f["nll"] + 1
