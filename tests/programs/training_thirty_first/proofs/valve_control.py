import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

REPAIR = ("        critic_loss.backward()\n", "        self.critic_opt.zero_grad()\n        critic_loss.backward()\n")


def gradient_used(*edits):
    """The gradient that the critic's second step uses, and the one of its loss."""
    g = run("valve_control", *edits, as_main=False)
    torch.manual_seed(0)
    agent = g["Agent"]()
    batch = lambda: (torch.randn(64, 4), torch.rand(64, 2) * 2 - 1, -torch.rand(64), torch.randn(64, 4))
    agent.update(*batch())
    s, a, r, s2 = batch()
    with torch.no_grad():
        target = r + g["GAMMA"] * agent.critic_target(s2, agent.actor_target(s2))
    loss = F.mse_loss(agent.critic(s, a), target)
    formula = torch.cat([x.flatten() for x in torch.autograd.grad(loss, list(agent.critic.parameters()))])
    left = None if next(agent.critic.parameters()).grad is None else flat_grad(agent.critic).clone()
    seen = []
    agent.critic_opt.register_step_pre_hook(lambda *_: seen.append(flat_grad(agent.critic).clone()))
    agent.update(s, a, r, s2)
    return seen[0], formula, left


used, formula, left = gradient_used()
print("written:", rel(used, formula), "left over", left.norm().item(), rel(used - left, formula))
assert left.norm() > 0.1 and rel(used, formula) > 0.2
assert rel(used - left, formula) < 1e-4  # exactly the actor's loss is what is too much
used, formula, _ = gradient_used(REPAIR)
print("repaired:", rel(used, formula))
assert rel(used, formula) < 1e-5

# The consequence: the critic learns values far above the returns that the policy earns.
bad = run("valve_control", capture=("main",)).locals["main"]
good = run("valve_control", REPAIR, capture=("main",)).locals["main"]
print("written: return, value", bad["score"], bad["value"], " repaired:", good["score"], good["value"])
gap = lambda r: r["value"] - r["score"]
assert gap(bad) > 1.0 and gap(bad) > abs(gap(good)) + 1.0
