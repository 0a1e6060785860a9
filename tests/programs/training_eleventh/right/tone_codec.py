"""A small neural audio codec: vector-quantised autoencoder for harmonic tones, with a codebook of running averages."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH, N_CODES, DIM, BATCH, STEPS = 256, 32, 12, 32, 220


def tones(n, generator):
    t = torch.arange(LENGTH) / LENGTH
    f0 = torch.tensor([4.0, 6.0, 8.0])[torch.randint(0, 3, (n, 1), generator=generator)]
    phase = torch.randint(0, 4, (n, 1), generator=generator) * math.pi / 2
    second = torch.rand(n, 1, generator=generator)
    wave = torch.sin(2 * math.pi * f0 * t + phase) + 0.5 * second * torch.sin(4 * math.pi * f0 * t + phase)
    return (wave + 0.02 * torch.randn(n, LENGTH, generator=generator)).unsqueeze(1)


class EMAQuantizer(nn.Module):
    """Codes are the averages of the latents assigned to them; nothing in here is learned by gradient."""

    def __init__(self, n_codes, dim, decay=0.95, beta=0.25):
        super().__init__()
        self.decay, self.beta = decay, beta
        self.register_buffer("codes", torch.randn(n_codes, dim))
        self.register_buffer("counts", torch.ones(n_codes))
        self.register_buffer("sums", self.codes.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def _update(self, flat, onehot):
        self.counts.lerp_(onehot.sum(0), 1 - self.decay)
        self.sums.lerp_(onehot.t() @ flat, 1 - self.decay)
        dead = self.counts < 0.1
        if dead.any():
            picks = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
            self.sums[dead] = picks
            self.counts[dead] = 1.0
        self.codes.copy_(self.sums / self.counts[:, None])

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, z.shape[1])
        if self.training and not self.ready:
            self.codes.copy_(flat.detach()[torch.randperm(len(flat))[: len(self.codes)]])
            self.sums.copy_(self.codes)
            self.ready.fill_(True)
        with torch.no_grad():
            index = torch.cdist(flat, self.codes).argmin(dim=1)
        quantised = F.embedding(index, self.codes).view(z.shape[0], z.shape[2], -1).transpose(1, 2)
        if self.training:
            self._update(flat.detach(), F.one_hot(index, len(self.codes)).float())
        commitment = self.beta * F.mse_loss(z, quantised)
        return z + (quantised - z).detach(), commitment, index


class Codec(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, width, 8, stride=4, padding=2), nn.GELU(),
            nn.Conv1d(width, width, 8, stride=4, padding=2), nn.GELU(), nn.Conv1d(width, DIM, 3, padding=1),
        )
        self.quantizer = EMAQuantizer(N_CODES, DIM)
        self.decoder = nn.Sequential(
            nn.Conv1d(DIM, width, 3, padding=1), nn.GELU(),
            nn.ConvTranspose1d(width, width, 8, stride=4, padding=2), nn.GELU(),
            nn.ConvTranspose1d(width, 1, 8, stride=4, padding=2),
        )

    def forward(self, x):
        z, commitment, index = self.quantizer(self.encoder(x))
        return self.decoder(z), commitment, index


def spectral_loss(a, b):
    window = torch.hann_window(64)
    mags = [torch.stft(s.squeeze(1), 64, 32, window=window, return_complex=True).abs() for s in (a, b)]
    return F.l1_loss(*mags)


@torch.no_grad()
def report(model, x, title):
    model.eval()
    y, _, index = model(x)
    snr = 10 * torch.log10(x.pow(2).sum() / (x - y).pow(2).sum())
    usage = torch.bincount(index, minlength=N_CODES).float()
    p = usage / usage.sum()
    perplexity = torch.exp(-(p * (p + 1e-9).log()).sum())
    print(f"{title}: SNR {snr.item():.2f} dB, codebook perplexity {perplexity.item():.1f}")
    model.train()


torch.manual_seed(2)
gen = torch.Generator().manual_seed(2)
train, held_out = tones(512, gen), tones(128, gen)
codec = Codec()
optimizer = torch.optim.Adam(codec.parameters(), lr=3e-3)
for step in range(1, STEPS + 1):
    batch = train[torch.randint(0, len(train), (BATCH,))]
    recon, commitment, _ = codec(batch)
    loss = F.mse_loss(recon, batch) + 0.05 * spectral_loss(recon, batch) + commitment
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(codec.parameters(), 1.0)
    optimizer.step()
    if step % 55 == 0:
        report(codec, held_out, f"step {step}")
