import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

wrong = run("cluster_potential")
fixed = run("cluster_potential", ("retain_graph=True", "create_graph=True"))
_, f = wrong["model"](wrong["train"][0])
_, g = fixed["model"](fixed["train"][0])
print("force requires grad:", f.requires_grad, g.requires_grad)
print("force rmse:", wrong["rmse_f"], "->", fixed["rmse_f"])
assert not f.requires_grad and g.requires_grad
# the weight of the force term makes no difference at all to the trained parameters
other = run("cluster_potential", ("FORCE_WEIGHT = 0.05, 1.0", "FORCE_WEIGHT = 0.05, 0.0"))
assert all(torch.equal(a, b) for a, b in zip(wrong["model"].parameters(), other["model"].parameters()))
assert fixed["rmse_f"] < 0.5 * wrong["rmse_f"]
