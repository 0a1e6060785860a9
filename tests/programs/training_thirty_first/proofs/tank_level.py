import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

RECORD = ("    td_loss.backward()\n", "    want = torch.autograd.grad(td_loss, list(critic.parameters()), retain_graph=True)\n"
          "    td_loss.backward()\n"
          "    RECORD.append((torch.cat([p.grad.flatten() for p in critic.parameters()]).clone(), torch.cat([g.flatten() for g in want])))\n")
ZERO = ("    td_loss.backward()\n", "    critic_opt.zero_grad()\n    td_loss.backward()\n")


def off(*edits):
    r = run("tank_level", *edits, inject={"RECORD": []})
    return r, [rel(a, b) for a, b in r["RECORD"]]


written, errors = off(RECORD)
assert errors[0] < 1e-5                                   # nothing is left before the first update
assert sum(e > 0.2 for e in errors[1:]) > 0.9 * len(errors[1:])
repaired, errors = off(ZERO, RECORD)
assert max(errors) < 1e-4

# What is left over is the gradient of the actor's loss, and the critic says too much because of it.
gap = {k: r["predicted"] - r["returns"].mean().item() for k, r in (("written", written), ("repaired", repaired))}
print(gap, written["returns"].mean().item(), repaired["returns"].mean().item())
assert gap["written"] > gap["repaired"] + 0.3
