import torch
from torch import nn


class GaussianPolicy(nn.Module):
    def __init__(self, obs, act, width=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, width), nn.Tanh(), nn.Linear(width, act))
        self.log_std = nn.Parameter(torch.full((act,), -0.5))

    def act(self, obs):
        mean = self.body(obs)
        std = self.log_std.exp()
        action = mean + std * torch.randn_like(mean)
        scaled = (action - mean) / std
        logp = (-0.5 * scaled ** 2 - self.log_std).sum(-1)
        return action, logp


class PointArm:
    def __init__(self, n):
        self.n = n
        self.mix = torch.tensor([[0.6, -0.3], [0.2, 0.7], [0.1, 0.4]])

    def reset(self):
        self.goal = torch.randn(self.n, 3)
        return self.goal

    def reward(self, action):
        with torch.no_grad():
            return -(action - self.goal @ self.mix).pow(2).sum(-1)


def train(policy, env, rounds, lr):
    opt = torch.optim.RMSprop(policy.parameters(), lr=lr)
    history = []
    for i in range(rounds):
        obs = env.reset()
        action, logp = policy.act(obs)
        reward = env.reward(action)
        advantage = (reward - reward.mean()) / (reward.std() + 1e-6)
        objective = -(advantage * logp).mean()
        opt.zero_grad()
        objective.backward()
        opt.step()
        history.append(reward.mean().item())
        if (i + 1) % 50 == 0:
            print(f"round {i + 1}: reward {sum(history[-50:]) / 50:.3f}")
    return history


if __name__ == "__main__":
    torch.manual_seed(3)
    policy = GaussianPolicy(3, 2)
    train(policy, PointArm(256), rounds=250, lr=2e-3)
    print("std", [round(v, 3) for v in policy.log_std.exp().tolist()])
