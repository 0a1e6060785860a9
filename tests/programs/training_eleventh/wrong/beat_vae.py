"""Beta-VAE on synthetic heart beats: learn a small latent code of beat morphology, then use it for rhythm features."""
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(11)

LENGTH = 64
LATENT = 6


def make_beats(n):
    t = torch.linspace(0, 1, LENGTH)
    r_pos = 0.4 + 0.06 * torch.randn(n, 1)
    qrs_width = 0.02 + 0.02 * torch.rand(n, 1)
    t_height = 0.1 + 0.5 * torch.rand(n, 1)
    p_height = 0.25 * torch.rand(n, 1)
    drift = 0.3 * torch.randn(n, 1)
    beat = torch.exp(-((t - r_pos) / qrs_width) ** 2 / 2)
    beat = beat + t_height * torch.exp(-((t - r_pos - 0.25) / 0.06) ** 2 / 2)
    beat = beat + p_height * torch.exp(-((t - r_pos + 0.18) / 0.03) ** 2 / 2)
    beat = beat + drift * (t - 0.5) + 0.02 * torch.randn(n, LENGTH)
    return beat, t_height.squeeze(1)


class BeatEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, 16, 5, stride=2, padding=2), nn.GELU(),
            nn.Conv1d(16, 32, 5, stride=2, padding=2), nn.GELU(),
        )
        self.mu = nn.Linear(32 * LENGTH // 4, LATENT)
        self.log_std = nn.Linear(32 * LENGTH // 4, LATENT)

    def forward(self, x):
        h = self.conv(x.unsqueeze(1)).flatten(1)
        return self.mu(h), self.log_std(h).clamp(-6, 2)


class BeatVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = BeatEncoder()
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 128), nn.GELU(),
            nn.Linear(128, 128), nn.GELU(),
            nn.Linear(128, LENGTH),
        )

    def forward(self, x):
        mu, log_std = self.encoder(x)
        if self.training:
            z = torch.normal(mu, log_std.exp())
        else:
            z = mu
        return self.decoder(z), mu, log_std


def elbo_terms(x, recon, mu, log_std, sigma=0.1):
    nll = 0.5 * ((x - recon) / sigma) ** 2 + math.log(sigma)
    kl = 0.5 * (mu ** 2 + (2 * log_std).exp() - 1) - log_std
    return nll.sum(1).mean(), kl.sum(1).mean()


beats, heights = make_beats(2048)
test_beats, test_heights = make_beats(512)

model = BeatVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)

for epoch in range(15):
    model.train()
    beta = min(1.0, (epoch + 1) / 5)
    total_nll = total_kl = 0.0
    for batch in beats[torch.randperm(len(beats))].split(64):
        recon, mu, log_std = model(batch)
        nll, kl = elbo_terms(batch, recon, mu, log_std)
        loss = nll + beta * kl
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        optimizer.step()
        total_nll += nll.item() * len(batch)
        total_kl += kl.item() * len(batch)
    scheduler.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1:2d}  nll {total_nll / len(beats):8.2f}  kl {total_kl / len(beats):6.2f}")

model.eval()
with torch.no_grad():
    recon, mu, _ = model(test_beats)
    print(f"test reconstruction mse {F.mse_loss(recon, test_beats).item():.4f}")
    train_codes = model.encoder(beats)[0]
    design = torch.cat([train_codes, torch.ones(len(beats), 1)], 1)
    coef = torch.linalg.lstsq(design, heights.unsqueeze(1)).solution
    pred = torch.cat([mu, torch.ones(len(mu), 1)], 1) @ coef
    r2 = 1 - F.mse_loss(pred.squeeze(1), test_heights) / test_heights.var()
    print(f"T-wave height from latent code: R2 {r2.item():.3f}")
