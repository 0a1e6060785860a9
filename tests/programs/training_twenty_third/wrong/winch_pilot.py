"""Policy gradient with a learned baseline on a crane winch: keep the load at a requested height in gusty wind."""
import argparse

import torch
from torch import nn
from torch.distributions import Normal


class WinchEnv:
    """A batch of independent winches. Observation: height error, vertical speed, wind."""

    def __init__(self, n, horizon, generator):
        self.n, self.horizon, self.g = n, horizon, generator

    def reset(self):
        self.height = torch.randn(self.n, generator=self.g)
        self.speed = 0.3 * torch.randn(self.n, generator=self.g)
        self.wind = 0.5 * torch.randn(self.n, generator=self.g)
        return self.observe()

    def observe(self):
        return torch.stack([self.height, self.speed, self.wind], dim=-1)

    def step(self, pull):
        self.speed = 0.8 * self.speed + 0.3 * (pull.clamp(-3, 3) + self.wind)
        self.height = self.height + 0.3 * self.speed
        self.wind = 0.9 * self.wind + 0.1 * torch.randn(self.n, generator=self.g)
        cost = self.height.clamp(-3, 3) ** 2 + 0.05 * pull.clamp(-3, 3) ** 2
        return self.observe(), -cost


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, n_out))


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.mean = mlp(obs_dim, act_dim)
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())

    def act(self, obs):
        dist = self(obs)
        action = dist.rsample()
        return action, dist.log_prob(action).sum(-1), dist.entropy().sum(-1)


def rollout(env, policy):
    obs = env.reset()
    steps = []
    for _ in range(env.horizon):
        action, logp, entropy = policy.act(obs)
        next_obs, reward = env.step(action.detach().squeeze(-1))
        steps.append((obs, logp, entropy, reward))
        obs = next_obs
    return [torch.stack(x) for x in zip(*steps)]  # each is (time, env, ...)


def discounted(rewards, gamma):
    returns = torch.zeros_like(rewards)
    running = torch.zeros(rewards.shape[1])
    for t in reversed(range(rewards.shape[0])):
        running = rewards[t] + gamma * running
        returns[t] = running
    return returns


def main(args):
    torch.manual_seed(args.seed)
    env = WinchEnv(args.envs, 25, torch.Generator().manual_seed(args.seed + 1))
    policy, baseline = GaussianPolicy(3, 1), mlp(3, 1)
    policy_opt = torch.optim.Adam(policy.parameters(), lr=args.lr)
    baseline_opt = torch.optim.Adam(baseline.parameters(), lr=1e-2)

    history = []
    for it in range(args.iterations):
        obs, logp, entropy, rewards = rollout(env, policy)
        returns = discounted(rewards, args.gamma)
        values = baseline(obs).squeeze(-1)

        adv = returns - values.detach()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        policy_loss = -(adv * logp).mean() - args.entropy * entropy.mean()
        policy_opt.zero_grad()
        policy_loss.backward()
        policy_opt.step()

        value_loss = nn.functional.mse_loss(values, returns)
        baseline_opt.zero_grad()
        value_loss.backward()
        baseline_opt.step()

        history.append(rewards.sum(0).mean().item())
        if it % 20 == 0 or it == args.iterations - 1:
            print(f"it {it:3d}  return {history[-1]:8.2f}  value loss {value_loss.item():8.3f}")
    return policy, history


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--entropy", type=float, default=1e-3)
    trained_policy, returns_log = main(parser.parse_args([]))
