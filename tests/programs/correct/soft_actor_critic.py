"""Actor and two critics with their own optimizers, target critics that follow, and a learned temperature."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


def network(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 16), nn.ReLU(), nn.Linear(16, outputs))


actor = network(3, 2)
critics = nn.ModuleList([network(4, 1), network(4, 1)])
targets = copy.deepcopy(critics)
log_alpha = torch.zeros(1, requires_grad=True)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_optimizer = torch.optim.Adam(critics.parameters(), lr=3e-4)
alpha_optimizer = torch.optim.Adam([log_alpha], lr=3e-4)


def act(state):
    mean, log_std = actor(state).chunk(2, dim=-1)
    normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
    raw = normal.rsample()
    action = torch.tanh(raw)
    return action, (normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)).sum(-1, keepdim=True)


def value(networks, state, action):
    joint = torch.cat([state, action], dim=-1)
    return torch.min(networks[0](joint), networks[1](joint))


for step in range(3):
    state, following, reward = torch.randn(8, 3), torch.randn(8, 3), torch.randn(8, 1)
    action = torch.rand(8, 1) * 2 - 1
    with torch.no_grad():
        next_action, next_log = act(following)
        goal = reward + 0.99 * (value(targets, following, next_action) - log_alpha.exp() * next_log)
    joint = torch.cat([state, action], dim=-1)
    critic_loss = sum(F.mse_loss(critic(joint), goal) for critic in critics)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()

    new_action, log_prob = act(state)
    actor_loss = (log_alpha.exp().detach() * log_prob - value(critics, state, new_action)).mean()
    actor_optimizer.zero_grad()
    actor_loss.backward()
    actor_optimizer.step()

    alpha_loss = -(log_alpha * (log_prob.detach() - 1.0)).mean()
    alpha_optimizer.zero_grad()
    alpha_loss.backward()
    alpha_optimizer.step()

    with torch.no_grad():
        for slow, fast in zip(targets.parameters(), critics.parameters()):
            slow.mul_(0.995).add_(fast, alpha=0.005)
    print(step, round(critic_loss.item(), 3), round(actor_loss.item(), 3))
