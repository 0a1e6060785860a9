"""Neural codec for short frames: convolutional autoencoder with a vector quantizer whose codebook is an EMA."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

FRAME = 128
SR = 4000
CODES = 64
DIM = 8


def vowel_frames(n):
    t = torch.arange(FRAME) / SR
    f0 = torch.empty(n, 1).uniform_(90, 200)
    formant = torch.tensor([[400.0], [700.0], [1100.0], [1500.0]])[torch.randint(4, (n,))]
    wave = torch.zeros(n, FRAME)
    for h in range(1, 12):
        gain = torch.exp(-((h * f0 - formant) / 250) ** 2) + 0.05
        wave += gain * torch.cos(2 * math.pi * h * f0 * t)
    return (wave / wave.abs().amax(1, keepdim=True))[:, None]


class EmaQuantizer(nn.Module):
    def __init__(self, codes, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("codebook", torch.randn(codes, dim))
        self.register_buffer("usage", torch.ones(codes))
        self.register_buffer("sums", self.codebook.clone())
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def refresh(self, flat, index):
        onehot = F.one_hot(index, len(self.usage)).to(flat.dtype)
        self.usage.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
        self.codebook.copy_(self.sums / self.usage[:, None].clamp(min=1e-4))
        idle = self.usage < 0.05
        if idle.any():
            fresh = flat[torch.randint(len(flat), (int(idle.sum()),))]
            self.codebook[idle] = fresh
            self.sums[idle] = fresh
            self.usage[idle] = 1.0

    def forward(self, z):
        flat = z.transpose(1, 2).reshape(-1, z.shape[1])
        if self.training and not self.ready:
            with torch.no_grad():
                self.codebook.copy_(flat[torch.randperm(len(flat))[:len(self.usage)]])
                self.sums.copy_(self.codebook)
                self.ready.fill_(True)
        index = torch.cdist(flat.detach(), self.codebook).argmin(1)
        q = self.codebook[index].view(z.shape[0], z.shape[2], -1).transpose(1, 2)
        commit = F.mse_loss(z, q)
        if self.training:
            self.refresh(flat.detach(), index)
        return z + (q - z).detach(), commit, index


class Codec(nn.Module):
    def __init__(self, ch=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv1d(1, ch, 8, stride=4, padding=2), nn.ELU(),
                                 nn.Conv1d(ch, ch, 8, stride=4, padding=2), nn.ELU(), nn.Conv1d(ch, DIM, 1))
        self.vq = EmaQuantizer(CODES, DIM)
        self.dec = nn.Sequential(nn.Conv1d(DIM, ch, 3, padding=1), nn.ELU(),
                                 nn.ConvTranspose1d(ch, ch, 8, stride=4, padding=2), nn.ELU(),
                                 nn.ConvTranspose1d(ch, 1, 8, stride=4, padding=2))

    def forward(self, wave):
        q, commit, index = self.vq(self.enc(wave))
        return self.dec(q), commit, index


def main():
    torch.manual_seed(4)
    codec = Codec()
    opt = torch.optim.AdamW(codec.parameters(), lr=3e-3, weight_decay=1e-4)
    test = vowel_frames(256)
    for step in range(400):
        wave = vowel_frames(32)
        out, commit, _ = codec(wave)
        loss = F.mse_loss(out, wave) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 80 == 79:
            print(f"step {step + 1} loss {loss.item():.4f} commit {commit.item():.4f}")
    codec.eval()
    with torch.no_grad():
        out, _, index = codec(test)
        snr = 10 * torch.log10(test.pow(2).sum() / (out - test).pow(2).sum())
    print(f"test SNR {snr.item():.2f} dB, {index.unique().numel()} of {CODES} codes in use")


if __name__ == "__main__":
    main()
