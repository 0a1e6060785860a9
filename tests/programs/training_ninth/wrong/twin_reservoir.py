"""TD3 for the gates of a reservoir: twin critics, smoothed targets, delayed policy updates."""
import copy

import torch
from torch import nn


class Reservoir:
    """Two basins in series with random inflow; gates release water, floods and shortages cost."""

    def __init__(self, n, gen):
        self.n, self.gen = n, gen

    def reset(self):
        self.level = torch.rand(self.n, 2, generator=self.gen)
        self.season = torch.rand(self.n, 1, generator=self.gen) * 6.28
        return self.observe()

    def observe(self):
        return torch.cat([self.level - 0.5, self.season.sin(), self.season.cos()], dim=1)

    def step(self, gates):
        release = 0.15 * (gates.clamp(-1, 1) + 1) * self.level
        inflow = 0.12 * (1 + self.season.sin()) + 0.08 * torch.randn(self.n, 1, generator=self.gen).abs()
        upper = self.level[:, :1] + inflow - release[:, :1]
        lower = self.level[:, 1:] + release[:, :1] - release[:, 1:]
        self.level = torch.cat([upper, lower], dim=1).clamp(0, 2)
        self.season = self.season + 0.15
        noise = 0.3 * torch.randn(self.n, generator=self.gen)
        reward = -(self.level - 0.6).pow(2).sum(1) * 3 - (release[:, 1] - 0.15).abs() + noise
        return self.observe(), reward


class Critic(nn.Module):
    def __init__(self, obs=4, act=2, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(obs + act, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
        )

    def forward(self, obs, act):
        return self.net(torch.cat([obs, act], dim=1)).squeeze(1)


class Actor(nn.Module):
    def __init__(self, obs=4, act=2, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, width), nn.ReLU(), nn.Linear(width, act), nn.Tanh())

    def forward(self, obs):
        return self.net(obs)


class TD3:
    def __init__(self, gen, gamma=0.95, tau=0.02, delay=2):
        self.gen, self.gamma, self.tau, self.delay = gen, gamma, tau, delay
        self.actor = Actor()
        self.critic_a = Critic()
        self.critic_b = copy.deepcopy(self.critic_a)
        self.target_actor = copy.deepcopy(self.actor).requires_grad_(False)
        self.target_a = copy.deepcopy(self.critic_a).requires_grad_(False)
        self.target_b = copy.deepcopy(self.critic_b).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam([*self.critic_a.parameters(), *self.critic_b.parameters()], lr=2e-3)
        self.updates = 0

    def targets(self, rew, nxt):
        with torch.no_grad():
            act = self.target_actor(nxt)
            smooth = (0.2 * torch.randn(act.shape, generator=self.gen)).clamp(-0.4, 0.4)
            act = (act + smooth).clamp(-1, 1)
            return rew + self.gamma * torch.min(self.target_a(nxt, act), self.target_b(nxt, act))

    def update(self, obs, act, rew, nxt):
        y = self.targets(rew, nxt)
        loss = (self.critic_a(obs, act) - y).pow(2).mean() + (self.critic_b(obs, act) - y).pow(2).mean()
        self.critic_opt.zero_grad()
        loss.backward()
        self.critic_opt.step()
        self.updates += 1
        if self.updates % self.delay == 0:
            gain = self.critic_a(obs, self.actor(obs)).mean()
            self.actor_opt.zero_grad()
            (-gain).backward()
            self.actor_opt.step()
            self.follow(self.target_actor, self.actor)
            self.follow(self.target_a, self.critic_a)
            self.follow(self.target_b, self.critic_b)
        return loss.item()

    @torch.no_grad()
    def follow(self, slow, fast):
        for s, f in zip(slow.parameters(), fast.parameters()):
            s.lerp_(f, self.tau)


def main(steps=500):
    torch.manual_seed(23)
    gen = torch.Generator().manual_seed(23)
    env, agent = Reservoir(16, gen), TD3(gen)
    memory, rewards, losses, obs = [], [], [], env.reset()
    for t in range(steps):
        if t % 60 == 0:
            obs = env.reset()
        with torch.no_grad():
            act = (agent.actor(obs) + 0.2 * torch.randn(16, 2, generator=gen)).clamp(-1, 1)
        nxt, rew = env.step(act)
        memory.append((obs, act, rew, nxt))
        rewards.append(rew.mean().item())
        obs = nxt
        pick = torch.randint(0, len(memory), (6,), generator=gen).tolist()
        losses.append(agent.update(*(torch.cat(x) for x in zip(*(memory[i] for i in pick)))))
        if t % 100 == 0:
            print(f"{t:4d}  critic loss {losses[-1]:.3f}  reward {rewards[-1]:+.3f}")
    return agent, memory, rewards


if __name__ == "__main__":
    agent, memory, rewards = main()
    obs, act = memory[-1][:2]
    with torch.no_grad():
        value = torch.min(agent.critic_a(obs, act), agent.critic_b(obs, act)).mean().item()
    print(f"reward: first 60 {sum(rewards[:60]) / 60:+.3f}  last 60 {sum(rewards[-60:]) / 60:+.3f}  value {value:+.2f}")
