"""CrossQ (Bhatt et al. 2024): soft actor-critic without target nets, with batch norm in the critics.

State-action pairs of both time steps go through the critics as one batch, so that the normalisation sees the
mixture of both; the policy update uses the running statistics.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

GAMMA, ENTROPY_GOAL = 0.9, -2.0


class Drones:
    """Planar quadrotors in the small: steer to the origin with accelerations, a fresh start after each crash."""

    def __init__(self, count):
        self.state = torch.zeros(count, 4)
        self.place(torch.ones(count, dtype=torch.bool))

    def place(self, which):
        self.state[which] = torch.randn(int(which.sum()), 4) * torch.tensor([0.8, 0.8, 0.3, 0.3])

    def step(self, action):
        velocity = 0.9 * self.state[:, 2:] + 0.3 * action
        position = self.state[:, :2] + 0.3 * velocity
        following = torch.cat([position, velocity], dim=-1)
        crashed = position.norm(dim=-1) > 2.5
        reward = 1.0 - 0.5 * position.norm(dim=-1) - crashed.float()
        self.state = following.clone()
        self.place(crashed)
        return following, reward, crashed.float()


def critic_net(hidden=48):
    norm = dict(momentum=0.05)
    return nn.Sequential(nn.BatchNorm1d(6, **norm), nn.Linear(6, hidden), nn.ReLU(), nn.BatchNorm1d(hidden, **norm),
                         nn.Linear(hidden, hidden), nn.ReLU(), nn.BatchNorm1d(hidden, **norm), nn.Linear(hidden, 1))


class Actor(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.mean, self.spread = nn.Linear(hidden, 2), nn.Linear(hidden, 2)

    def forward(self, state):
        features = self.body(state)
        log_std = -3.5 + 2.5 * (torch.tanh(self.spread(features)) + 1.0)
        noise = torch.randn_like(log_std)
        raw = self.mean(features) + log_std.exp() * noise
        log_prob = -0.5 * noise ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        log_prob = log_prob - 2.0 * (math.log(2.0) - raw - F.softplus(-2.0 * raw))
        return torch.tanh(raw), log_prob.sum(-1)


class CrossQ:
    def __init__(self):
        self.actor = Actor()
        self.critics = nn.ModuleList([critic_net(), critic_net()])
        self.log_alpha = nn.Parameter(torch.tensor(-2.0))
        betas = (0.5, 0.999)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-3, betas=betas)
        self.critic_opt = torch.optim.Adam(self.critics.parameters(), lr=3e-3, betas=betas)
        self.alpha_opt = torch.optim.Adam([self.log_alpha], lr=3e-3, betas=betas)

    def update_critics(self, state, action, reward, following, crashed):
        with torch.no_grad():
            next_action, next_logp = self.actor(following)
            alpha = self.log_alpha.exp()
        pairs = torch.cat([torch.cat([state, action], -1), torch.cat([following, next_action], -1)], dim=0)
        both = torch.stack([critic(pairs).squeeze(-1) for critic in self.critics])
        now, later = both.chunk(2, dim=1)
        target = reward + GAMMA * (1.0 - crashed) * (later.detach().min(dim=0).values - alpha * next_logp)
        loss = (now - target).pow(2).mean(dim=1).sum()
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        return loss.item()

    def update_actor(self, state):
        self.critics.requires_grad_(False).eval()
        action, log_prob = self.actor(state)
        pair = torch.cat([state, action], -1)
        value = torch.stack([critic(pair).squeeze(-1) for critic in self.critics]).min(dim=0).values
        loss = (self.log_alpha.exp().detach() * log_prob - value).mean()
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()
        self.critics.requires_grad_(True).train()

        alpha_loss = -(self.log_alpha * (log_prob.detach() + ENTROPY_GOAL)).mean()
        self.alpha_opt.zero_grad()
        alpha_loss.backward()
        self.alpha_opt.step()


def main():
    torch.manual_seed(9)
    world, agent = Drones(32), CrossQ()
    rows = torch.zeros(130 * 32, 12)
    recent = []
    for step in range(130):
        before = world.state.clone()
        with torch.no_grad():
            action, _ = agent.actor(before)
        following, reward, crashed = world.step(action)
        rows[step * 32:(step + 1) * 32] = torch.cat([before, action, reward[:, None], following, crashed[:, None]], -1)
        recent.append(reward.mean().item())
        if step >= 8:
            batch = rows[torch.randint((step + 1) * 32, (96,))]
            state, act, rew, nxt, crash = batch.split([4, 2, 1, 4, 1], dim=-1)
            loss = agent.update_critics(state, act, rew.squeeze(-1), nxt, crash.squeeze(-1))
            if step % 2 == 0:
                agent.update_actor(state)
        if step % 26 == 25:
            print(f"step {step + 1}  reward {sum(recent) / len(recent):.3f}  critics {loss:.4f}")
            recent.clear()


if __name__ == "__main__":
    main()
