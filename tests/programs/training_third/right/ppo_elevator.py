from functools import cached_property

import torch
from torch import nn
from torch.distributions import Categorical


class ElevatorPolicy(nn.Module):
    def __init__(self, obs=6, actions=3):
        super().__init__()
        self.pi = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, actions))
        self.v = nn.Sequential(nn.Linear(obs, 32), nn.Tanh(), nn.Linear(32, 1))

    def dist(self, obs):
        return Categorical(logits=self.pi(obs))


class Batch:
    def __init__(self, policy, obs, actions, returns):
        self.policy = policy
        self.obs, self.actions, self.returns = obs, actions, returns

    @cached_property
    @torch.no_grad()
    def old_logp(self):
        return self.policy.dist(self.obs).log_prob(self.actions)

    @cached_property
    @torch.no_grad()
    def advantage(self):
        adv = self.returns - self.policy.v(self.obs).squeeze(-1)
        return (adv - adv.mean()) / (adv.std() + 1e-6)


def gather(policy, n, wait):
    obs = torch.randn(n, 6)
    with torch.no_grad():
        actions = policy.dist(obs).sample()
    returns = -(obs @ wait).gather(1, actions[:, None]).squeeze(1)
    return Batch(policy, obs, actions, returns)


def improve(policy, opt, batch, epochs=6, clip=0.15, max_kl=0.05):
    for k in range(epochs):
        logp = policy.dist(batch.obs).log_prob(batch.actions)
        ratio = torch.exp(logp - batch.old_logp)
        actor = -torch.min(ratio * batch.advantage, ratio.clamp(1 - clip, 1 + clip) * batch.advantage).mean()
        critic = (policy.v(batch.obs).squeeze(-1) - batch.returns).pow(2).mean()
        kl = (batch.old_logp - logp).mean().item()
        if kl > max_kl:
            break
        opt.zero_grad()
        (actor + 0.5 * critic).backward()
        opt.step()
    return k, kl, (ratio - 1).abs().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    wait = torch.randn(6, 3)
    policy = ElevatorPolicy()
    opt = torch.optim.Adam(policy.parameters(), lr=5e-3)
    for r in range(6):
        batch = gather(policy, 256, wait)
        k, kl, shift = improve(policy, opt, batch)
        print(f"round {r} return {batch.returns.mean():.3f} passes {k} kl {kl:.4f} shift {shift:.3f}")
