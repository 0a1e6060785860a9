import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = (("self.log_scale = nn.Parameter(-torch.log(x.std(dim=0) + 1e-6))", "self.log_scale.copy_(-torch.log(x.std(dim=0) + 1e-6))"),
       ("self.shift = nn.Parameter(-x.mean(dim=0))", "self.shift.copy_(-x.mean(dim=0))"))


def check(*edits):
    created = []
    program = run("coupling_flow", *edits, as_main=False)
    act = program["ActNorm"]
    original = act.initialize

    def initialize(self, x):
        original(self, x)
        created.append((self, self.log_scale.detach().clone(), self.shift.detach().clone()))

    act.initialize = initialize
    torch.manual_seed(3)
    train = program["readings"](4000)
    flow = program["Flow"](dim=6)
    optimizer = program["fit"](flow, train, steps=60)
    assert len(created) == 4
    moved = [not torch.equal(m.log_scale, a) and not torch.equal(m.shift, b) for m, a, b in created]
    held = [in_optimizer(m.log_scale, optimizer) and in_optimizer(m.shift, optimizer) for m, _, _ in created]
    return moved, held


moved, held = check()
print(moved, held)
assert not any(moved) and not any(held)
moved, held = check(*fix)
print(moved, held)
assert all(moved) and all(held)
whole = run("coupling_flow")
assert not any(in_optimizer(p, whole["optimizer"]) for n, p in whole["flow"].named_parameters() if "log_scale" in n or "shift" in n)
