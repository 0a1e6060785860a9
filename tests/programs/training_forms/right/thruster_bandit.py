import math

import torch
from torch import nn


class GaussianThrust(nn.Module):
    def __init__(self, sensors, axes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(sensors, 32), nn.Tanh())
        self.centre = nn.Linear(32, axes)
        self.spread = nn.Parameter(torch.full((axes,), -0.5))

    def forward(self, obs):
        return self.centre(self.body(obs)), self.spread.exp()


def log_density(value, centre, width):
    z = (value - centre) / width
    return (-0.5 * z * z - width.log() - 0.5 * math.log(2 * math.pi)).sum(-1)


def act(policy, obs):
    centre, width = policy(obs)
    value = centre + width * torch.randn_like(centre)
    value = value.detach()
    return value, log_density(value, centre, width)


def payoff(obs, thrust):
    best = torch.stack([obs[:, 0] - obs[:, 1], 0.5 * obs[:, 2]], 1)
    return -(thrust - best).square().sum(1)


def main():
    torch.manual_seed(17)
    policy = GaussianThrust(4, 2)
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
    baseline = 0.0
    for episode in range(300):
        obs = torch.randn(128, 4)
        thrust, logp = act(policy, obs)
        with torch.no_grad():
            gain = payoff(obs, thrust)
            advantage = gain - baseline
            baseline = 0.9 * baseline + 0.1 * gain.mean().item()
        loss = -(advantage * logp).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if episode % 60 == 59:
            spread = policy.spread.detach().exp().mean().item()
            print(f"episode {episode + 1}: payoff {gain.mean().item():.3f} spread {spread:.3f}")


if __name__ == "__main__":
    main()
