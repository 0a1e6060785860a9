"""Adversarial autoencoder on noisy sensor curves.

The encoder maps each curve to a two-dimensional code; a small critic pushes the distribution of the codes towards a
standard normal, so that new curves can be drawn by decoding samples of the prior.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

POINTS = 24
CODE = 2
BATCH = 128
STEPS = 200
ADV_WEIGHT = 0.1


def make_curves(n):
    """Damped oscillations with a random frequency and a random decay."""
    t = torch.linspace(0, 1, POINTS)
    freq = 1.0 + 2.0 * torch.rand(n, 1)
    decay = 0.5 + 2.5 * torch.rand(n, 1)
    clean = torch.exp(-decay * t) * torch.cos(2 * math.pi * freq * t)
    return clean + 0.03 * torch.randn(n, POINTS)


class Encoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(POINTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, CODE)
        )

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CODE, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, POINTS)
        )

    def forward(self, z):
        return self.net(z)


class CodeCritic(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(CODE, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1)
        )

    def forward(self, z):
        return self.net(z).squeeze(-1)


def prior_gap(codes):
    """Distance of the codes' first two moments from those of a standard normal."""
    mean = codes.mean(0)
    cov = torch.cov(codes.t())
    return (mean.pow(2).sum() + (cov - torch.eye(CODE)).pow(2).sum()).sqrt().item()


torch.manual_seed(11)
curves = make_curves(2048)
held_out = make_curves(512)
encoder, decoder, critic = Encoder(), Decoder(), CodeCritic()
opt_ae = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3, betas=(0.5, 0.999))
opt_critic = torch.optim.Adam(critic.parameters(), lr=4e-3, betas=(0.5, 0.999))

for step in range(STEPS):
    x = curves[torch.randint(len(curves), (BATCH,))]
    z = encoder(x)
    logit_code = critic(z)

    recon_loss = F.mse_loss(decoder(z), x)
    adv_loss = F.binary_cross_entropy_with_logits(logit_code, torch.ones(BATCH))
    ae_loss = recon_loss + ADV_WEIGHT * adv_loss
    opt_ae.zero_grad()
    ae_loss.backward(retain_graph=True)

    logit_prior = critic(torch.randn(BATCH, CODE))
    critic_loss = 0.5 * (
        F.binary_cross_entropy_with_logits(logit_prior, torch.ones(BATCH))
        + F.binary_cross_entropy_with_logits(logit_code, torch.zeros(BATCH))
    )
    opt_critic.zero_grad()
    critic_loss.backward()

    opt_ae.step()
    opt_critic.step()

    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step:4d}  recon {recon_loss.item():.4f}  adv {adv_loss.item():.3f}  critic {critic_loss.item():.3f}")

with torch.no_grad():
    codes = encoder(held_out)
    error = F.mse_loss(decoder(codes), held_out).item()
    drawn = decoder(torch.randn(512, CODE))
    nearest = torch.cdist(drawn, curves).min(dim=1).values.mean().item()
print(f"held-out reconstruction {error:.4f}")
print(f"codes: mean {codes.mean(0).tolist()}  std {codes.std(0).tolist()}  moment gap {prior_gap(codes):.3f}")
print(f"distance of drawn curves to the nearest real one {nearest:.3f}")
