"""DDPG on a damped pendant: bring it to rest with a small motor. Vectorised toy environment, uniform replay."""
import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    seed: int = 4
    envs: int = 16
    steps: int = 400
    warmup: int = 20
    batch: int = 128
    gamma: float = 0.95
    tau: float = 0.02
    actor_lr: float = 1e-3
    critic_lr: float = 2e-3
    noise: float = 0.3


class Pendant:
    def __init__(self, n, gen):
        self.n, self.gen = n, gen
        self.angle, self.speed = torch.zeros(n), torch.zeros(n)
        self.restart(torch.ones(n, dtype=torch.bool))

    def restart(self, which):
        k = int(which.sum())
        self.angle[which] = torch.rand(k, generator=self.gen) * 2 - 1
        self.speed[which] = torch.rand(k, generator=self.gen) - 0.5

    def observe(self):
        return torch.stack([self.angle, self.speed], 1)

    def step(self, torque):
        self.speed = 0.95 * self.speed - 0.1 * torch.sin(self.angle) + 0.3 * torque.squeeze(1)
        self.angle = self.angle + 0.5 * self.speed
        reward = -(self.angle ** 2 + 0.2 * self.speed ** 2 + 0.02 * torque.squeeze(1) ** 2)
        fell = self.angle.abs() > 3.0
        return self.observe(), reward - 10.0 * fell, fell


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1), nn.Tanh())

    def forward(self, s):
        return self.net(s)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, s, a):
        return self.net(torch.cat([s, a], 1)).squeeze(1)


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    env, replay = Pendant(cfg.envs, gen), []
    actor, critic = Actor(), Critic()
    actor_t, critic_t = copy.deepcopy(actor), copy.deepcopy(critic)
    actor_opt = torch.optim.Adam(actor.parameters(), lr=cfg.actor_lr)
    critic_opt = torch.optim.Adam(critic.parameters(), lr=cfg.critic_lr)
    obs, recent = env.observe(), []
    for t in range(cfg.steps):
        with torch.no_grad():
            act = (actor(obs) + cfg.noise * torch.randn(cfg.envs, 1)).clamp(-1, 1)
        nxt, rew, fell = env.step(act)
        replay += list(zip(obs, act, rew, nxt, fell.float()))
        env.restart(fell | (torch.rand(cfg.envs, generator=gen) < 0.03))
        obs = env.observe()
        recent.append(rew.mean().item())
        if t < cfg.warmup:
            continue

        pick = torch.randint(len(replay), (cfg.batch,), generator=gen).tolist()
        s, a, r, s2, d = (torch.stack(col) for col in zip(*[replay[i] for i in pick]))
        with torch.no_grad():
            target = r + cfg.gamma * (1 - d) * critic_t(s2, actor_t(s2))
        critic_loss = (critic(s, a) - target).pow(2).mean()
        critic_opt.zero_grad()
        critic_loss.backward()
        critic_opt.step()

        actor_loss = -critic(s, actor(s)).mean()
        actor_opt.zero_grad()
        actor_loss.backward()
        actor_opt.step()

        with torch.no_grad():
            for net, net_t in ((actor, actor_t), (critic, critic_t)):
                for p, p_t in zip(net.parameters(), net_t.parameters()):
                    p_t.lerp_(p, cfg.tau)
        if (t + 1) % 80 == 0:
            print(f"t {t + 1:4d}  reward {sum(recent[-80:]) / 80:7.3f}  critic {critic_loss.item():.4f}  actor {actor_loss.item():.3f}")
    return recent


if __name__ == "__main__":
    main()
