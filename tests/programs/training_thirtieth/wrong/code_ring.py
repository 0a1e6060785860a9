"""InfoGAN on points of a ring: one continuous code should come to control the angle of the generated point.

A shared trunk feeds the real/fake head and the head of the Gaussian posterior q(code | x); the generator is rewarded
for points from which the code can be read back.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

NOISE = 3
BATCH = 128
STEPS = 180
INFO_WEIGHT = 0.5


def ring(n):
    angle = 1.5 * math.pi * torch.rand(n)
    radius = 1.5 + 0.08 * torch.randn(n)
    return torch.stack([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)


def sample_latent(n):
    noise = torch.randn(n, NOISE)
    code = torch.empty(n).uniform_(-1.0, 1.0)
    return noise, code


class Generator(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(NOISE + 1, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)
        )

    def forward(self, noise, code):
        return self.net(torch.cat([noise, code.unsqueeze(1)], dim=1))


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(2, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2)
        )
        self.real_head = nn.Linear(width, 1)
        self.code_head = nn.Sequential(nn.Linear(width, 32), nn.LeakyReLU(0.2), nn.Linear(32, 2))

    def forward(self, x):
        h = self.trunk(x)
        mean, log_var = self.code_head(h).chunk(2, dim=1)
        return self.real_head(h).squeeze(1), mean, log_var.clamp(-4.0, 2.0)


def gaussian_nll(code, mean, log_var):
    """Negative log-density of the code under q(code | x), up to a constant."""
    squared = (code - mean).pow(2)
    return 0.5 * (log_var + squared / log_var.exp()).mean()


def correlation(a, b):
    return torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1].item()


def main():
    torch.manual_seed(17)
    data = ring(4096)
    generator, critic = Generator(), Critic()
    opt_g = torch.optim.Adam(
        [*generator.parameters(), *critic.code_head.parameters()], lr=2e-3, betas=(0.5, 0.99)
    )
    opt_d = torch.optim.Adam(
        [*critic.trunk.parameters(), *critic.real_head.parameters()], lr=1e-3, betas=(0.5, 0.99)
    )

    for step in range(STEPS):
        real = data[torch.randint(len(data), (BATCH,))]
        noise, code = sample_latent(BATCH)
        with torch.no_grad():
            fake = generator(noise, code)
        real_logit, _, _ = critic(real)
        fake_logit, _, _ = critic(fake)
        d_loss = F.softplus(-real_logit).mean() + F.softplus(fake_logit).mean()
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()

        noise, code = sample_latent(BATCH)
        fake_logit, mean, log_var = critic(generator(noise, code))
        info = gaussian_nll(code, mean, log_var)
        g_loss = F.softplus(-fake_logit).mean() + INFO_WEIGHT * info
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()

        if step % 45 == 0 or step == STEPS - 1:
            print(f"step {step:4d}  d {d_loss.item():.3f}  g {g_loss.item():.3f}  info {info.item():.3f}")

    with torch.no_grad():
        noise, code = sample_latent(2000)
        points = generator(noise, code)
        _, mean, _ = critic(points)
        radius = points.norm(dim=1)
    code_corr = correlation(code, mean)
    print(f"radius of generated points {radius.mean():.3f} +- {radius.std():.3f}")
    print(f"correlation of the code with the value read back {code_corr:.3f}")
    return code_corr


if __name__ == "__main__":
    code_corr = main()
