"""VQ-VAE on short waveforms; the codebook follows exponential moving averages of the codes assigned to it."""
import math

import torch
import torch.nn.functional as F
from torch import nn

POINTS = 32
SLOTS = 4
DIM = 8
ENTRIES = 32
BATCH = 96
STEPS = 200


def make_waves(n):
    """Each quarter of a waveform has one of a few frequencies and a random phase sign."""
    t = torch.linspace(0, 1, POINTS // SLOTS)
    freq = torch.randint(1, 4, (n, SLOTS, 1)).float()
    sign = torch.randint(0, 2, (n, SLOTS, 1)).float() * 2 - 1
    waves = sign * torch.sin(math.pi * freq * t)
    return waves.reshape(n, POINTS) + 0.05 * torch.randn(n, POINTS)


class AveragedCodebook(nn.Module):
    def __init__(self, entries, dim, decay=0.95, eps=1e-5, min_use=0.2):
        super().__init__()
        self.decay, self.eps, self.min_use = decay, eps, min_use
        embed = torch.randn(entries, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.ones(entries))
        self.register_buffer("embed_sum", embed.clone())

    def nearest(self, flat):
        with torch.no_grad():
            return torch.cdist(flat, self.embed).argmin(dim=1)

    @torch.no_grad()
    def update(self, flat, index):
        one_hot = F.one_hot(index, len(self.embed)).to(flat.dtype)
        self.cluster_size.mul_(self.decay).add_(one_hot.sum(0), alpha=1 - self.decay)
        self.embed_sum.mul_(self.decay).add_(one_hot.t() @ flat, alpha=1 - self.decay)
        total = self.cluster_size.sum()
        smoothed = (self.cluster_size + self.eps) / (total + len(self.embed) * self.eps) * total
        self.embed.data.copy_(self.embed_sum / smoothed[:, None])

        unused = (self.cluster_size < self.min_use).nonzero().squeeze(1)
        if len(unused):
            fresh = flat[torch.randint(len(flat), (len(unused),))]
            self.embed[unused] = fresh
            self.embed_sum[unused] = fresh
            self.cluster_size[unused] = 1.0

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        index = self.nearest(flat)
        quantized = F.embedding(index, self.embed).view_as(z)
        if self.training:
            self.update(flat, index)
        commitment = F.mse_loss(z, quantized.detach())
        passed = z + (quantized - z).detach()
        return passed, commitment, index


class WaveAutoencoder(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(POINTS // SLOTS, width), nn.ReLU(), nn.Linear(width, DIM))
        self.codebook = AveragedCodebook(ENTRIES, DIM)
        self.decoder = nn.Sequential(nn.Linear(DIM, width), nn.ReLU(), nn.Linear(width, POINTS // SLOTS))

    def forward(self, x):
        z = self.encoder(x.view(len(x), SLOTS, -1))
        passed, commitment, index = self.codebook(z)
        return self.decoder(passed).reshape(len(x), POINTS), commitment, index


def perplexity(index):
    share = torch.bincount(index, minlength=ENTRIES).float() / index.numel()
    return torch.exp(-(share * (share + 1e-10).log()).sum()).item()


def main():
    torch.manual_seed(29)
    train, test = make_waves(3000), make_waves(600)
    model = WaveAutoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for step in range(STEPS):
        x = train[torch.randint(len(train), (BATCH,))]
        recon, commitment, index = model(x)
        recon_loss = F.mse_loss(recon, x)
        loss = recon_loss + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == STEPS - 1:
            print(
                f"step {step:4d}  recon {recon_loss.item():.4f}  commitment {commitment.item():.4f}"
                f"  perplexity {perplexity(index):.1f}"
            )

    model.eval()
    with torch.no_grad():
        recon, _, index = model(test)
        test_error = F.mse_loss(recon, test).item()
    print(f"test reconstruction {test_error:.4f}  entries used {index.unique().numel()} of {ENTRIES}")
    return model, test_error


if __name__ == "__main__":
    model, test_error = main()
