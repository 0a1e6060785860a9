import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("self.actor_optimizer.zero_grad()\n", "self.actor_optimizer.zero_grad(); self.critic_optimizer.zero_grad()\n")
probe = ("        critic_loss.backward()\n", """        alone = torch.autograd.grad(critic_loss, list(self.critic.parameters()), retain_graph=True)
        critic_loss.backward()
        PROBE.append(rel(flat_grad(self.critic), torch.cat([g.flatten() for g in alone])))
""")


def go(*edits):
    seen = []
    return run("tank_levels", *edits, inject={"PROBE": seen, "rel": rel, "flat_grad": flat_grad}), seen


written, w = go(probe)
repaired, r = go(probe, repair)
assert w[0] < 1e-5 and min(w[1:]) > 0.2 and sorted(w)[len(w) // 2] > 1.0, (w[0], min(w[1:]), sorted(w)[len(w) // 2])
assert max(r) < 1e-5, max(r)
# no return can be positive: every reward is at most zero; the critic of the run as written promises one
value = lambda x: sum(h[1] for h in x["history"][-40:]) / 40
assert all(h[2] <= 0 for h in written["history"])
assert value(written) > 0.5 and value(repaired) < 0.05, (value(written), value(repaired))
print("ok", value(written), value(repaired))
