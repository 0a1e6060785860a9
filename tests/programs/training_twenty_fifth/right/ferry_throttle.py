"""TD3-style control of a ferry that must hold its place at the pier against a current."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

OBS, ACT = 4, 1


class Pier:
    """Many ferries at once. Observation: (offset, speed, current, time left), all of order one."""

    def __init__(self, n, generator, horizon=30):
        self.n, self.generator, self.horizon = n, generator, horizon
        self.reset()

    def reset(self):
        self.offset = torch.rand(self.n, generator=self.generator) * 2 - 1
        self.speed = torch.zeros(self.n)
        self.current = torch.randn(self.n, generator=self.generator) * 0.3
        self.left = self.horizon
        return self.observe()

    def observe(self):
        left = torch.full((self.n,), self.left / self.horizon)
        return torch.stack([self.offset, self.speed, self.current, left], dim=1)

    def step(self, throttle):
        self.speed = 0.8 * self.speed + 0.25 * (throttle[:, 0] + self.current)
        self.offset = (self.offset + 0.4 * self.speed).clamp(-2.0, 2.0)
        self.left -= 1
        reward = -self.offset.abs() - 0.05 * throttle[:, 0] ** 2
        return self.observe(), reward[:, None], torch.full((self.n, 1), float(self.left == 0))


class Critic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(OBS + ACT, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, 1)) for _ in range(2))

    def forward(self, obs, act):
        both = torch.cat([obs, act], dim=1)
        return self.heads[0](both), self.heads[1](both)


def train(episodes=24, ferries=8, batch=128, gamma=0.97, tau=0.02, seed=14):
    torch.manual_seed(seed)
    env = Pier(ferries, torch.Generator().manual_seed(seed))
    actor = nn.Sequential(nn.Linear(OBS, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, ACT), nn.Tanh())
    critic = Critic()
    slow_actor, slow_critic = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
    memory, history, updates = [], [], 0

    for episode in range(episodes):
        obs, total = env.reset(), 0.0
        for _ in range(env.horizon):
            with torch.no_grad():
                act = (actor(obs) + 0.3 * torch.randn(ferries, ACT)).clamp(-1, 1)
            nxt, reward, done = env.step(act)
            memory += list(torch.cat([obs, act, reward, nxt, done], dim=1))
            obs, total = nxt, total + reward.mean().item()
            if len(memory) < 500:
                continue

            rows = torch.stack([memory[i] for i in torch.randint(len(memory), (batch,)).tolist()])
            o, a, r, o2, d = rows.split([OBS, ACT, 1, OBS, 1], dim=1)
            with torch.no_grad():
                a2 = (slow_actor(o2) + (0.2 * torch.randn_like(a)).clamp(-0.4, 0.4)).clamp(-1, 1)
                target = r + gamma * (1 - d) * torch.min(*slow_critic(o2, a2))
            q1, q2 = critic(o, a)
            critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
            critic_loss.backward()
            critic_opt.step()
            critic_opt.zero_grad()

            updates += 1
            if updates % 2 == 0:
                actor_loss = -critic(o, actor(o))[0].mean()
                actor_loss.backward(inputs=list(actor.parameters()))
                actor_opt.step()
                actor_opt.zero_grad()
                with torch.no_grad():
                    for fast, slow in ((actor, slow_actor), (critic, slow_critic)):
                        for p, s in zip(fast.parameters(), slow.parameters()):
                            s.mul_(1 - tau).add_(p, alpha=tau)
        history.append(total)
        if episode % 6 == 5:
            print(f"episode {episode + 1}: return {sum(history[-6:]) / 6:.2f}, critic loss {critic_loss.item():.4f}")
    return actor, critic, history


if __name__ == "__main__":
    actor, critic, history = train()
