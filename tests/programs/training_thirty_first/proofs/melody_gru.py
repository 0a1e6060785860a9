import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

made = run("melody_gru")
fixed = run("melody_gru", ("filter(lambda p: p.requires_grad, model.parameters())",
                           "[p for p in model.parameters() if p.requires_grad]"))
log = ("    nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n",
       "    nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n"
       "    norms.append(torch.cat([p.grad.flatten() for p in optimizer.param_groups[0]['params']]).norm().item())\n")
start = ("history = []", "history = []\nnorms = []")
norms = run("melody_gru", log, start)["norms"]
fixed_norms = run("melody_gru", log, start, ("filter(lambda p: p.requires_grad, model.parameters())",
                                             "[p for p in model.parameters() if p.requires_grad]"))["norms"]
assert list(made["trainable"]) == []  # nothing is left for the clipping
nothing = run("melody_gru", ("    nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n", ""))
assert torch.equal(flat(made["model"]), flat(nothing["model"]))  # the call does nothing at all
assert sum(n > 1.05 * made["MAX_NORM"] for n in norms) > 10  # steps are taken with norms above the bound
assert max(fixed_norms) <= 1.001 * made["MAX_NORM"]
loss = lambda r: sum(r["history"][-20:]) / 20
print(max(norms), loss(made), loss(fixed))
assert loss(fixed) < loss(made) - 0.05
