"""A small vector-quantised audio codec; the codebook is learned by exponential moving averages."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    def __init__(self, size, dim, decay=0.95, eps=1e-5, revive_below=0.2):
        super().__init__()
        self.decay, self.eps, self.revive_below = decay, eps, revive_below
        self.register_buffer("codes", torch.randn(size, dim))
        self.register_buffer("count", torch.ones(size))
        self.register_buffer("total", self.codes.clone())

    @torch.no_grad()
    def learn(self, flat, index):
        onehot = F.one_hot(index, len(self.codes)).to(flat.dtype)
        self.count.lerp_(onehot.sum(0), 1 - self.decay)
        self.total.lerp_(onehot.T @ flat, 1 - self.decay)
        dead = self.count < self.revive_below
        if dead.any():
            pick = torch.randint(0, len(flat), (int(dead.sum()),))
            self.total[dead] = flat[pick]
            self.count[dead] = 1.0
        self.codes.copy_(self.total / (self.count + self.eps)[:, None])

    def forward(self, z):
        flat = z.detach().flatten(0, 1)
        index = torch.cdist(flat, self.codes).argmin(1)
        q = self.codes[index].view_as(z)
        commit = F.mse_loss(z, q)
        if self.training:
            self.learn(flat, index)
        return z + (q - z).detach(), commit, index


class Codec(nn.Module):
    def __init__(self, frame=16, dim=8, codes=32, hidden=64):
        super().__init__()
        self.frame = frame
        self.encoder = nn.Sequential(nn.Linear(frame, hidden), nn.GELU(), nn.Linear(hidden, dim))
        self.codebook = Codebook(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, frame))

    def forward(self, wave):
        frames = wave.unflatten(-1, (-1, self.frame))
        q, commit, index = self.codebook(self.encoder(frames))
        return self.decoder(q).flatten(1), commit, index


def waves(n, gen, length=128):
    """Plucked notes out of a small scale, with a little noise."""
    t = torch.arange(length)
    note = torch.randint(0, 4, (n, 1), generator=gen)
    freq = 2 * torch.pi / 32 * (1 + note)
    phase = torch.pi / 4 * torch.randint(0, 4, (n, 1), generator=gen)
    loud = 0.5 + torch.rand(n, 1, generator=gen)
    return loud * torch.sin(freq * t + phase) + 0.05 * torch.randn(n, length, generator=gen)


def snr(model, wave):
    model.eval()
    with torch.no_grad():
        out, _, index = model(wave)
    model.train()
    used = index.unique().numel()
    return (10 * torch.log10(wave.square().sum() / (wave - out).square().sum())).item(), used


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--beta", type=float, default=0.25)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args([])
    torch.manual_seed(51)
    gen = torch.Generator().manual_seed(52)
    model, held_out = Codec(), waves(400, gen)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        wave = waves(args.batch, gen)
        out, commit, _ = model(wave)
        loss = F.mse_loss(out, wave) + args.beta * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 80 == 0:
            db, used = snr(model, held_out)
            print(f"step {step} loss {loss.item():.4f} held-out snr {db:.2f} dB, {used} codes used")
    return model


if __name__ == "__main__":
    main()
