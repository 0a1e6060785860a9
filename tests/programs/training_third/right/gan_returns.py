import torch
from torch import nn
import torch.nn.functional as F


class ReturnsGenerator(nn.Module):
    def __init__(self, noise=6, days=8):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(noise, 32), nn.Tanh(), nn.Linear(32, days))

    def forward(self, n, g):
        return self.net(torch.randn(n, self.noise, generator=g))


class ReturnsCritic(nn.Module):
    def __init__(self, days=8):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(days, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class Duel:
    def __init__(self, gen, critic, seed=3):
        self.gen, self.critic = gen, critic
        self.opt_g = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.g = torch.Generator().manual_seed(seed)

    @torch.no_grad()
    def frozen_sample(self, n):
        return self.gen(n, self.g)

    def critic_turn(self, real):
        self.opt_c.zero_grad()
        fake = self.frozen_sample(len(real))
        loss = F.relu(1 - self.critic(real)).mean() + F.relu(1 + self.critic(fake)).mean()
        loss.backward()
        self.opt_c.step()
        return loss.item()

    def generator_turn(self, n):
        self.opt_g.zero_grad()
        loss = -self.critic(self.gen(n, self.g)).mean()
        loss.backward()
        self.opt_g.step()
        return loss.item()

    def epoch(self, data):
        for batch in data.split(50):
            a = self.generator_turn(len(batch))
            b = self.critic_turn(batch)
        return a, b


def market(n, g):
    level = 0.5 + torch.rand(n, 1, generator=g)
    return level * torch.randn(n, 8, generator=g) + 0.3


if __name__ == "__main__":
    torch.manual_seed(0)
    data = market(500, torch.Generator().manual_seed(1))
    duel = Duel(ReturnsGenerator(), ReturnsCritic())
    for e in range(5):
        a, b = duel.epoch(data)
        print(f"epoch {e} gen {a:.3f} critic {b:.3f} fake mean {duel.frozen_sample(400).mean():.3f}")
