"""Discrete codes for speech frames: an encoder, a codebook kept by moving averages, and a decoder."""
import torch
import torch.nn.functional as F
from torch import nn

BINS, PHONES, FRAMES = 24, 12, 20


def make_phones(generator):
    """Every phone has two formants in the spectrum."""
    centres = torch.rand(PHONES, 2, generator=generator) * (BINS - 1)
    bins = torch.arange(BINS, dtype=torch.float32)
    return torch.exp(-((bins - centres.unsqueeze(-1)) ** 2) / 6).sum(dim=1)


def make_speech(phones, count, generator):
    held = torch.randint(0, PHONES, (count, FRAMES // 2), generator=generator).repeat_interleave(2, dim=1)
    return phones[held] + 0.05 * torch.randn(count, FRAMES, BINS, generator=generator)


class Codebook(nn.Module):
    """Nearest entry for every vector; entries follow the mean of their vectors, idle ones start again from data."""

    def __init__(self, entries, width, decay=0.95, epsilon=1e-5, floor=0.5):
        super().__init__()
        self.entries = entries
        self.decay = decay
        self.epsilon = epsilon
        self.floor = floor
        self.register_buffer("vectors", torch.zeros(entries, width))
        self.register_buffer("sizes", torch.zeros(entries))
        self.register_buffer("sums", torch.zeros(entries, width))
        self.register_buffer("ready", torch.tensor(False))

    @torch.no_grad()
    def start_from(self, flat):
        chosen = torch.randperm(len(flat))[: self.entries]
        self.vectors.copy_(flat[chosen])
        self.sums.copy_(flat[chosen])
        self.sizes.fill_(1.0)
        self.ready.fill_(True)

    @torch.no_grad()
    def follow(self, flat, codes):
        chosen = F.one_hot(codes, self.entries).to(flat.dtype)
        self.sizes.mul_(self.decay).add_(chosen.sum(dim=0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(chosen.t() @ flat, alpha=1 - self.decay)
        total = self.sizes.sum()
        smooth = (self.sizes + self.epsilon) / (total + self.entries * self.epsilon) * total
        self.vectors.copy_(self.sums / smooth.unsqueeze(1))
        idle = self.sizes < self.floor
        if idle.any():
            fresh = flat[torch.randint(len(flat), (int(idle.sum()),))]
            self.vectors[idle] = fresh
            self.sums[idle] = fresh
            self.sizes[idle] = 1.0

    def forward(self, encoded):
        flat = encoded.detach().flatten(0, -2)
        if self.training and not self.ready:
            self.start_from(flat)
        codes = torch.cdist(flat, self.vectors).argmin(dim=1)
        quantized = F.embedding(codes, self.vectors).view_as(encoded)
        if self.training:
            self.follow(flat, codes)
        commitment = F.mse_loss(encoded, quantized)
        return encoded + (quantized - encoded).detach(), codes.view(encoded.shape[:-1]), commitment


class FrameCodec(nn.Module):
    def __init__(self, width=16, entries=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(BINS, 48), nn.ReLU(), nn.Linear(48, width))
        self.codebook = Codebook(entries, width)
        self.decoder = nn.Sequential(nn.Linear(width, 48), nn.ReLU(), nn.Linear(48, BINS))

    def forward(self, frames):
        quantized, codes, commitment = self.codebook(self.encoder(frames))
        return self.decoder(quantized), codes, commitment


def perplexity(codes, entries):
    share = torch.bincount(codes.flatten(), minlength=entries).float() / codes.numel()
    return torch.exp(-(share * (share + 1e-10).log()).sum()).item()


@torch.no_grad()
def evaluate(model, frames):
    model.eval()
    output, codes, _ = model(frames)
    model.train()
    return F.mse_loss(output, frames).item(), perplexity(codes, model.codebook.entries)


def main(steps=240):
    torch.manual_seed(14)
    generator = torch.Generator().manual_seed(2)
    phones = make_phones(generator)
    test = make_speech(phones, 64, generator)
    model = FrameCodec()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(steps):
        frames = make_speech(phones, 16, generator)
        output, _, commitment = model(frames)
        loss = F.mse_loss(output, frames) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 40 == 0:
            error, used = evaluate(model, test)
            print(f"step {step + 1:3d}  loss {loss.item():.4f}  test error {error:.4f}  codes in use {used:.1f}")
    return model


if __name__ == "__main__":
    model = main()
