import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

WATCH = ("        critic_loss.backward()\n", "        exact = torch.autograd.grad(critic_loss, list(self.critics.parameters()), retain_graph=True)\n"
         "        critic_loss.backward()\n        LOG.append((torch.cat([g.flatten() for g in exact]), torch.cat([p.grad.flatten() for p in self.critics.parameters()])))\n")
FIX = ("        critic_loss.backward()\n", "        self.critic_opt.zero_grad()\n        critic_loss.backward()\n")
errors, losses = [], []
for edits in ((WATCH,), (WATCH, FIX)):
    log = []
    ns = run("entropy_swing", *edits, inject={"LOG": log}, capture=("main",))
    errors.append([rel(used, exact) for exact, used in log])
    print(ns.output)
print(errors[0][:3], sum(errors[0][1:]) / len(errors[0][1:]), max(errors[1]))
assert errors[0][0] < 1e-6                       # the first step is clean
assert sum(errors[0][1:]) / len(errors[0][1:]) > 0.5   # from then on the step uses another gradient
assert max(errors[1]) < 1e-5
