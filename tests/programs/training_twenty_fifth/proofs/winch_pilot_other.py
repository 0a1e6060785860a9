import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import copy
import torch
import torch.nn.functional as F
torch.set_num_threads(1)

FIX = ("        critic_loss.backward()\n", "        self.critic_opt.zero_grad()\n        critic_loss.backward()\n")


def gradient_error(result):
    """The gradient that the critic's optimizer gets, against the gradient of the critic's loss alone."""
    agent, memory, errors = result["agent"], result["memory"], []
    step = agent.critic_opt.step
    for _ in range(20):
        batch = memory.sample(64)
        obs, action, reward, next_obs = batch
        with torch.no_grad():
            backup = reward + agent.gamma * agent.critic_target(torch.cat([next_obs, agent.actor_target(next_obs)], 1))
        plain = torch.autograd.grad(F.mse_loss(agent.critic(torch.cat([obs, action], 1)), backup),
                                    list(agent.critic.parameters()))
        plain = torch.cat([g.flatten() for g in plain])

        def spy():
            errors.append(rel(flat_grad(agent.critic), plain))
            step()

        agent.critic_opt.step = spy
        agent.update(*batch)
    return sum(errors) / len(errors)


bad, good = run("winch_pilot_other"), run("winch_pilot_other", FIX)
print(bad.output, good.output)


def critic_bias(result):
    memory, agent = result["memory"], result["agent"]
    rows = memory.data[:memory.count]
    obs, action, reward, next_obs = rows.split([3, 1, 1, 3], dim=1)
    with torch.no_grad():
        q = agent.critic(torch.cat([obs, action], 1))
    return q.mean().item(), (q > 0).float().mean().item()


print("mean Q, share of Q above the best possible value of 0", critic_bias(bad), critic_bias(good))
eb, eg = gradient_error(bad), gradient_error(good)
print("relative error of the critic's gradient", eb, eg)
assert eg < 1e-4
assert eb > 0.5
assert sum(good["returns"][-8:]) > sum(bad["returns"][-8:]) / 4
