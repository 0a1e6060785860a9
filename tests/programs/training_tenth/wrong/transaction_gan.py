"""GAN that makes synthetic card transactions (amount, hour, merchant features) for a fraud-detection sandbox."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 11
LATENT = 8
FEATURES = 6
BATCH = 128
STEPS = 1200
D_STEPS = 2


def make_transactions(n=4096):
    rng = np.random.default_rng(SEED)
    segment = rng.integers(0, 3, n)
    centre = np.array([[1.5, 0.0, -1.0], [-1.0, 1.5, 0.5], [0.0, -1.5, 1.0]])[segment]
    base = centre + 0.25 * rng.standard_normal((n, 3))
    mixed = np.stack([base[:, 0] * base[:, 1], np.tanh(base[:, 2]), base.sum(1)], axis=1)
    x = np.concatenate([base, mixed], axis=1)
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x, dtype=torch.float32)


class Generator(nn.Module):
    def __init__(self, latent, features, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(latent, width), nn.LeakyReLU(0.2),
            nn.Linear(width, width), nn.LeakyReLU(0.2),
            nn.Linear(width, features),
        )

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, features, width=64):
        super().__init__()
        self.embed = nn.Linear(features, width)
        self.hidden = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        h = F.leaky_relu(self.embed(x), 0.2)
        h = F.leaky_relu(self.hidden(h), 0.2)
        return self.score(h).squeeze(1)


def critic_loss(critic, real, fake):
    return F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()


def generator_loss(critic, fake):
    return F.softplus(-critic(fake)).mean()


def moment_gap(generator, data):
    with torch.no_grad():
        fake = generator(torch.randn(4096, LATENT))
    mean_gap = (fake.mean(0) - data.mean(0)).norm()
    cov_gap = (torch.cov(fake.T) - torch.cov(data.T)).norm()
    return (mean_gap + cov_gap).item()


def main():
    torch.manual_seed(SEED)
    data = make_transactions()
    generator, critic = Generator(LATENT, FEATURES), Critic(FEATURES)
    opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.99))
    opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99))

    history = []
    for step in range(STEPS):
        for _ in range(D_STEPS):
            real = data[torch.randint(len(data), (BATCH,))]
            fake = generator(torch.randn(BATCH, LATENT)).detach()
            loss_d = critic_loss(critic, real, fake)
            loss_d.backward()
            opt_d.step()
            opt_d.zero_grad()

        fake = generator(torch.randn(BATCH, LATENT))
        loss_g = generator_loss(critic, fake)
        loss_g.backward()
        opt_g.step()
        opt_g.zero_grad()
        history.append((loss_d.item(), loss_g.item()))
        if (step + 1) % 400 == 0:
            d, g = np.mean(history[-200:], axis=0)
            print(f"step {step + 1}: critic {d:.3f} generator {g:.3f} moment gap {moment_gap(generator, data):.3f}")
    return generator, critic, data, history


if __name__ == "__main__":
    generator, critic, data, history = main()
