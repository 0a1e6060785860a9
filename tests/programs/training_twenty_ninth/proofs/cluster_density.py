import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

FIX = [("self.means = nn.Parameter(means)", "self.means.copy_(means)"),
       ("self.log_scales = nn.Parameter(scales)", "self.log_scales.copy_(scales)"),
       ("self.logits = nn.Parameter(logits)", "self.logits.copy_(logits)")]

wrong, fixed = run("cluster_density"), run("cluster_density", *FIX)
assert not any(in_optimizer(p, wrong["fitter"].optimizer) for p in wrong["mixture"].parameters())
assert all(in_optimizer(p, fixed["fitter"].optimizer) for p in fixed["mixture"].parameters())
for program, moves in ((wrong, False), (fixed, True)):
    mixture, fitter, x = program["mixture"], program["fitter"], program["x"]
    before = flat(mixture).clone()
    for _ in range(5):
        fitter.step(x[:128])
    assert (flat(mixture) != before).any().item() == moves
    # zero_grad of the optimizer does not reach the new parameters either
    grads = flat_grad(mixture)
    mixture.zero_grad()
    (-mixture.log_prob(x[:128]).mean()).backward()
    ratio = (grads.norm() / flat_grad(mixture).norm()).item()
    print("held out nll", program["nll"], "ratio of .grad to the gradient of one batch", ratio)
    assert (ratio > 5) == (not moves)
assert "moved 0" in wrong.output and any(f"moved {k}" in wrong.output for k in range(1, 8))
assert fixed["nll"] < wrong["nll"] - 0.5
