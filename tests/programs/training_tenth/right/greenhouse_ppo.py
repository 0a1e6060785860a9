"""PPO for a greenhouse heater (continuous action), with a KL guard that takes an update back when it went too far."""
import copy

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

SEED = 7
ENVS = 32
HORIZON = 24
ROUNDS = 40
GAMMA, LAMBDA, CLIP, MAX_KL = 0.9, 0.9, 0.2, 0.015


class Greenhouses:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.inside = 10 + 10 * torch.rand(ENVS, generator=self.g)
        self.outside = 15 * torch.rand(ENVS, generator=self.g)

    def observe(self):
        return torch.stack([self.inside, self.outside], dim=1)

    def step(self, heat):
        self.inside += 0.2 * (self.outside - self.inside) + 2 * (heat + 1).clamp(0, 3)
        self.outside = (self.outside + 0.5 * torch.randn(ENVS, generator=self.g)).clamp(0, 15)
        return -((self.inside - 20) / 5).square().clamp(max=4)


class Scaler(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("var", torch.ones(size))
        self.register_buffer("count", torch.tensor(1e-3))

    @torch.no_grad()
    def absorb(self, x):
        total, delta = self.count + len(x), x.mean(0) - self.mean
        self.var.mul_(self.count).add_(x.var(0, unbiased=False) * len(x)).add_(delta ** 2 * self.count * len(x) / total)
        self.var.div_(total)
        self.mean.add_(delta * len(x) / total)
        self.count.copy_(total)

    def forward(self, x):
        return (x - self.mean) / (self.var + 1e-6).sqrt()


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return Normal(self.net(x).squeeze(-1), self.log_std.exp())


def main():
    torch.manual_seed(SEED)
    env, scaler, policy = Greenhouses(SEED), Scaler(2), Policy()
    critic = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1), nn.Flatten(0))
    opt_pi = torch.optim.Adam(policy.parameters(), lr=1e-2)
    opt_v = torch.optim.Adam(critic.parameters(), lr=1e-2)
    taken_back, stopped, returns = 0, 0, []
    for _ in range(ROUNDS):
        scaler.absorb(env.observe())
        seen, acts, logps, rewards = [], [], [], []
        with torch.no_grad():
            for _ in range(HORIZON):
                x = scaler(env.observe())
                dist = policy(x)
                a = dist.sample()
                seen.append(x), acts.append(a), logps.append(dist.log_prob(a)), rewards.append(env.step(a))
            values = torch.stack([critic(x) for x in seen + [scaler(env.observe())]])
            adv, run = torch.zeros(HORIZON, ENVS), torch.zeros(ENVS)
            for t in reversed(range(HORIZON)):
                run = rewards[t] + GAMMA * values[t + 1] - values[t] + GAMMA * LAMBDA * run
                adv[t] = run
        x, a, old = torch.cat(seen), torch.cat(acts), torch.cat(logps)
        goal = (adv + values[:-1]).flatten()
        adv = (adv.flatten() - adv.mean()) / (adv.std() + 1e-6)
        for _ in range(6):
            safe = copy.deepcopy((policy.state_dict(), opt_pi.state_dict()))
            ratio = (policy(x).log_prob(a) - old).exp()
            loss_pi = -torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
            opt_pi.zero_grad()
            loss_pi.backward()
            opt_pi.step()
            with torch.no_grad():
                kl = (old - policy(x).log_prob(a)).mean().item()
            if kl > MAX_KL:
                if kl > 2 * MAX_KL:
                    policy.load_state_dict(safe[0]), opt_pi.load_state_dict(safe[1])
                    taken_back += 1
                stopped += 1
                break
        for index in torch.randperm(len(x)).split(192):
            opt_v.zero_grad()
            (critic(x[index]) - goal[index]).square().mean().backward()
            opt_v.step()
        returns.append(torch.stack(rewards).mean().item())
    print(f"mean reward {np.mean(returns[:3]):.3f} -> {np.mean(returns[-5:]):.3f}, std {policy.log_std.exp().item():.2f}, "
          f"early stops {stopped}, taken back {taken_back}")
    return policy, critic, returns


if __name__ == "__main__":
    policy, critic, returns = main()
