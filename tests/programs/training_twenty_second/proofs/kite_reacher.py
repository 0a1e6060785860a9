import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
OLD = "        critic_loss.backward()\n"
NEW = "        self.critic_opt.zero_grad()\n        critic_loss.backward()\n"
# record, just before the critic's step, how far its gradient is from the gradient of the critic's own loss
PROBE_OLD = "        self.critic_opt.step()\n"
PROBE_NEW = """        PROBE(self)
        self.critic_opt.step()
"""
FRESH_OLD = "        critic_loss = F.mse_loss(self.critic(s, a), target)\n"
FRESH_NEW = FRESH_OLD + "        FRESH[:] = torch.autograd.grad(critic_loss, list(self.critic.parameters()), retain_graph=True)\n"


def measure(*edits):
    fresh, errs = [], []

    def probe(agent):
        errs.append(rel(flat_grad(agent.critic), torch.cat([g.flatten() for g in fresh])))

    r = run("kite_reacher", *edits, (FRESH_OLD, FRESH_NEW), (PROBE_OLD, PROBE_NEW),
            capture=("main",), inject={"PROBE": probe, "FRESH": fresh})
    loc = r.locals["main"]
    agent, buffer = loc["agent"], loc["buffer"]
    s, a, rew, s2 = (torch.from_numpy(t[:buffer.n]) for t in (buffer.s, buffer.a, buffer.r, buffer.s2))
    with torch.no_grad():
        td = agent.critic(s, a) - rew - agent.gamma * agent.critic(s2, agent.actor(s2))
        q = agent.critic(s, agent.actor(s)).mean().item()
    return sum(errs[1:]) / len(errs[1:]), td.pow(2).mean().item(), q


bad, good = measure(), measure((OLD, NEW))
print("gradient error, squared TD error, mean Q:", bad, good)
assert bad[0] > 0.1 and good[0] < 1e-6
assert bad[2] > good[2] + 20  # overestimation
