import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("{name: p.detach() for", "{name: p.detach().clone() for")
wrong, fixed = run("ray_tomography"), run("ray_tomography", FIX)
for name, p in wrong["scanner"].named_parameters():
    assert wrong["average"].values[name].data_ptr() == p.data_ptr()
    assert fixed["average"].values[name].data_ptr() != fixed["scanner"].get_parameter(name).data_ptr()
    assert torch.equal(p, fixed["scanner"].get_parameter(name))          # the raw iterates are the same run
assert torch.equal(wrong["result"].image(), wrong["scanner"].image())     # "average" is the last iterate
print("error", wrong["error"], fixed["error"])
assert fixed["error"] < 0.8 * wrong["error"]
