import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("        critic_loss.backward()\n", "        self.critic_opt.zero_grad()\n        critic_loss.backward()\n")


def look(result):
    agent = result["agent"]
    # what the critic's optimizer would use at its next step, against the gradient of the critic's own loss
    used = {}
    step = agent.critic_opt.step
    batch = result["replay"].sample(64)
    own_before = None

    def spy(*a, **k):
        used["grad"] = flat_grad(agent.critic)
        return step(*a, **k)

    obs, act, rew, nxt = batch
    with torch.no_grad():
        target = rew + agent.gamma * agent.critic_target(nxt, agent.actor_target(nxt))
    loss = torch.nn.functional.mse_loss(agent.critic(obs, act), target)
    own = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(agent.critic.parameters()))])
    agent.critic_opt.step = spy
    agent.learn(*batch)
    return rel(used["grad"], own), result["evaluate"](agent)


w, w_return = look(run("reach_control"))
r, r_return = look(run("reach_control", FIX))
print("critic gradient off by", w, r, "test return", w_return, r_return)
assert w > 0.1 and r < 1e-5
assert r_return > w_return + 5
