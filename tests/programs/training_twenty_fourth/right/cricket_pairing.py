"""Contrastive pairing of cricket songs with vibration records: large contrastive batches on a small memory budget."""
import argparse
from contextlib import nullcontext

import torch
import torch.nn as nn
import torch.nn.functional as F


def make_pairs(n, gen, length=64):
    """The same individual recorded twice: chirp rate, pitch and phase are shared, microphone and noise are not."""
    t = torch.linspace(0, 1, length)
    rate = 2 + 6 * torch.rand(n, 1, generator=gen)
    pitch = 10 + 15 * torch.rand(n, 1, generator=gen)
    phase = 6.28 * torch.rand(n, 1, generator=gen)
    envelope = torch.sigmoid(8 * torch.sin(6.28 * rate * t + phase))
    song = envelope * torch.sin(6.28 * pitch * t)
    thump = envelope * torch.cos(3.14 * pitch * t)
    return (song + 0.3 * torch.randn(song.shape, generator=gen)).unsqueeze(1), \
        (thump + 0.3 * torch.randn(thump.shape, generator=gen)).unsqueeze(1)


class Encoder(nn.Module):
    def __init__(self, width=24, out=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 7, 2, 3), nn.GroupNorm(4, width), nn.GELU(),
            nn.Conv1d(width, width, 5, 2, 2), nn.GroupNorm(4, width), nn.GELU(),
            nn.Flatten(), nn.Linear(width * 16, out),
        )

    def forward(self, x):
        return F.normalize(self.body(x), dim=1)


class Pairing(nn.Module):
    def __init__(self):
        super().__init__()
        self.song, self.thump = Encoder(), Encoder()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, a, b):
        logits = self.log_scale.exp() * a @ b.t()
        target = torch.arange(len(a))
        return (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2


def encode(encoder, x, chunk, grad):
    with nullcontext() if grad else torch.no_grad():
        return torch.cat([encoder(part) for part in x.split(chunk)])


def backward_in_chunks(model, song, thump, chunk):
    """The loss needs all pairs at once, the encoders only ever see `chunk` of them with a graph."""
    a = encode(model.song, song, chunk, grad=False).requires_grad_()
    b = encode(model.thump, thump, chunk, grad=False).requires_grad_()
    loss = model.loss(a, b)
    loss.backward()
    for encoder, x, table in ((model.song, song, a.grad), (model.thump, thump, b.grad)):
        for part, grad in zip(x.split(chunk), table.split(chunk)):
            encoder(part).backward(gradient=grad)
    return loss.detach()


@torch.no_grad()
def retrieval(model, song, thump):
    a, b = model.song(song), model.thump(thump)
    return ((a @ b.t()).argmax(1) == torch.arange(len(a))).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=768)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--chunk", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    args = parser.parse_args()

    torch.manual_seed(17)
    gen = torch.Generator().manual_seed(17)
    song, thump = make_pairs(args.pairs, gen)
    test = make_pairs(128, gen)
    model = Pairing()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

    for epoch in range(args.epochs):
        losses = []
        for idx in torch.randperm(args.pairs, generator=gen).split(args.batch):
            optimizer.zero_grad()
            losses.append(backward_in_chunks(model, song[idx], thump[idx], args.chunk))
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print(f"epoch {epoch}  loss {torch.stack(losses).mean():.3f}  retrieval@1 of 128: {retrieval(model, *test):.3f}")
    return model


if __name__ == "__main__":
    main()
