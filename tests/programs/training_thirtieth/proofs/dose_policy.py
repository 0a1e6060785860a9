import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch
import torch.nn.functional as F

repair = (
    "        critic_loss = F.mse_loss(self.critic(patients, doses), outcomes)\n",
    "        critic_loss = F.mse_loss(self.critic(patients, doses), outcomes)\n        self.critic_optimizer.zero_grad()\n",
)

# The gradient with which the critic steps, against the gradient of the critic's loss alone.
def critic_gradient(*edits):
    r = run("dose_policy", *edits, as_main=False)
    torch.manual_seed(0)
    agent, batch = r["Agent"](), r["Log"](256).sample(128)
    patients, doses, outcomes = batch
    alone = torch.autograd.grad(F.mse_loss(agent.critic(patients, doses), outcomes), list(agent.critic.parameters()))
    alone = torch.cat([g.flatten() for g in alone])
    agent.update(*batch)
    return rel(flat_grad(agent.critic), alone)

print(critic_gradient(), critic_gradient(repair))
assert critic_gradient() > 0.2 and critic_gradient(repair) < 1e-5

# What follows: a critic that expects ever more, and a policy that is pushed to the edge.
wrong, right = run("dose_policy"), run("dose_policy", repair)
print(wrong["expected"], wrong["achieved"], right["expected"], right["achieved"])
assert wrong["expected"] > 3.0  # no outcome is above 1.2
assert abs(right["expected"] - right["achieved"]) < 0.2
assert right["achieved"] > wrong["achieved"] + 0.5
