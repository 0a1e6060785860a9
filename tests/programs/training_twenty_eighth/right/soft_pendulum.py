"""Soft actor-critic for a torque-limited pendulum: twin critics, a learned temperature, slow targets."""
import copy
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Pendulums:
    def __init__(self, count):
        self.count = count

    def reset(self):
        self.angle = (torch.rand(self.count) * 2 - 1) * 1.5
        self.rate = torch.randn(self.count) * 0.5
        return self.observe()

    def observe(self):
        return torch.stack([self.angle.cos(), self.angle.sin(), self.rate / 4], 1)

    def step(self, action):
        torque = 4 * action.squeeze(1)
        self.rate = (self.rate + 0.1 * (5 * self.angle.sin() + 3 * torque)).clamp(-6, 6)
        self.angle = torch.remainder(self.angle + 0.1 * self.rate + torch.pi, 2 * torch.pi) - torch.pi
        reward = -(self.angle.pow(2) + 0.1 * self.rate.pow(2) + 0.05 * torque.pow(2)) / 4
        return self.observe(), reward


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SquashedGaussian(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = mlp(obs_dim, 48, 2 * act_dim)

    def forward(self, obs, deterministic=False):
        mean, raw = self.net(obs).chunk(2, -1)
        if deterministic:
            return torch.tanh(mean), None
        log_std = -4 + 2.5 * (torch.tanh(raw) + 1)
        pre = torch.distributions.Normal(mean, log_std.exp())
        u = pre.rsample()
        squash = 2 * (torch.log(torch.tensor(2.0)) - u - F.softplus(-2 * u))
        return torch.tanh(u), (pre.log_prob(u) - squash).sum(-1)


class Twin(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.first, self.second = mlp(obs_dim + act_dim, 48, 48, 1), mlp(obs_dim + act_dim, 48, 48, 1)

    def forward(self, obs, act):
        x = torch.cat([obs, act], 1)
        return self.first(x).squeeze(1), self.second(x).squeeze(1)


class SAC:
    def __init__(self, obs_dim, act_dim, gamma=0.95, tau=0.02):
        self.actor, self.critic = SquashedGaussian(obs_dim, act_dim), Twin(obs_dim, act_dim)
        self.slow = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = torch.tensor(-1.0, requires_grad=True)
        self.target_entropy = -float(act_dim)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=2e-3)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=5e-3)
        self.gamma, self.tau = gamma, tau

    def learn(self, obs, act, rew, nxt):
        alpha = self.log_alpha.detach().exp()
        with torch.no_grad():
            next_act, next_logp = self.actor(nxt)
            goal = rew + self.gamma * (torch.minimum(*self.slow(nxt, next_act)) - alpha * next_logp)
        q1, q2 = self.critic(obs, act)
        critic_loss = F.mse_loss(q1, goal) + F.mse_loss(q2, goal)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()

        self.critic.requires_grad_(False)
        new_act, logp = self.actor(obs)
        actor_loss = (alpha * logp - torch.minimum(*self.critic(obs, new_act))).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        self.critic.requires_grad_(True)

        alpha_loss = -(self.log_alpha * (logp.detach() + self.target_entropy)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()

        for p, q in zip(self.critic.parameters(), self.slow.parameters()):
            q.data.lerp_(p.data, self.tau)
        return critic_loss.item(), actor_loss.item(), -logp.mean().item()


@torch.no_grad()
def evaluate(agent, steps=30):
    world, total = Pendulums(128), 0.0
    obs = world.reset()
    for _ in range(steps):
        obs, reward = world.step(agent.actor(obs, deterministic=True)[0])
        total += reward.mean().item()
    return total


def main(steps=260, count=16):
    torch.manual_seed(8)
    agent, world, memory = SAC(3, 1), Pendulums(count), deque(maxlen=200)
    obs = world.reset()
    for step in range(steps):
        with torch.no_grad():
            act = agent.actor(obs)[0] if step > 20 else torch.rand(count, 1) * 2 - 1
        nxt, rew = world.step(act)
        memory.append((obs, act, rew, nxt))
        obs = nxt if step % 30 != 29 else world.reset()
        if step >= 10:
            picks = torch.randint(len(memory), (5,)).tolist()
            info = agent.learn(*(torch.cat(parts) for parts in zip(*(memory[i] for i in picks))))
        if step % 65 == 64:
            print(f"step {step + 1:4d}  critic %.4f  actor %.3f  entropy %.3f" % info,
                  f" alpha {agent.log_alpha.exp().item():.3f}  test return {evaluate(agent):.2f}")
    return agent


if __name__ == "__main__":
    agent = main()
