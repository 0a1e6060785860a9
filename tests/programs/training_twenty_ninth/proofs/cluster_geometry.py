import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

as_written = run("cluster_geometry")
repaired = run("cluster_geometry", ("offsets.pow(2).sum(dim=-1).sqrt()", "(offsets.pow(2).sum(dim=-1) + 1e-12).sqrt()"))

# the gradient of the positions is NaN in full, before it is bounded
module = run("cluster_geometry", as_main=False)
model = module["LabelledCluster"](as_written["start"], torch.ones(10))
model().sum().backward()
assert model.positions.grad.isnan().all()
assert model.log_brightness.grad.isfinite().all()

# so no position moves in the whole run; with the root kept off 0 they do, and the fit works
assert torch.equal(as_written["model"].positions.detach(), as_written["start"])
assert (repaired["model"].positions.detach() - repaired["start"]).abs().max() > 0.1
assert as_written["curve"][-1] > 20 * repaired["curve"][-1], (as_written["curve"][-1], repaired["curve"][-1])
print(as_written["curve"][-1], repaired["curve"][-1])
print(as_written.output.splitlines()[-1], "|", repaired.output.splitlines()[-1])
