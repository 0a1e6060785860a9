import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch


def critic_grads(r):
    agent = r["agent"]
    p, v, _ = r["compute_losses"](agent, r["b_obs"], r["b_act"], r["b_ret"])
    g = torch.autograd.grad(p, list(agent.critic.parameters()), allow_unused=True, retain_graph=True)
    total = sum(x.norm().item() for x in g if x is not None)
    gv = torch.autograd.grad(v, list(agent.critic.parameters()))
    return total, sum(x.norm().item() for x in gv)


wrong = run("a2c_corridor")
fixed = run("a2c_corridor", ("advantages = returns - values", "advantages = returns - values.detach()"))
w, wv = critic_grads(wrong)
f, fv = critic_grads(fixed)
print("policy gradient in critic: wrong", w, "of", wv, "fixed", f, "of", fv)
assert w > 1e-3 and f == 0.0
