"""Contrastive pretraining with a batch of 256 pairs that is encoded in slices of 32 to bound activation memory."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    """LayerNorm instead of BatchNorm, so that a slice is encoded like the whole batch."""

    def __init__(self, dim=32):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.GELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.GELU())
        self.norm = nn.LayerNorm(32 * 9)
        self.head = nn.Sequential(nn.Linear(32 * 9, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.head(self.norm(self.conv(x).flatten(1))), dim=1)


def info_nce(a, b, temperature=0.1):
    logits = a @ b.t() / temperature
    target = torch.arange(len(a))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


class SlicedContrast:
    def __init__(self, encoder, slice_size):
        self.encoder, self.slice_size = encoder, slice_size

    def encode(self, x):
        with torch.no_grad():
            return torch.cat([self.encoder(part) for part in x.split(self.slice_size)])

    def push(self, x, grad):
        for part, g in zip(x.split(self.slice_size), grad.split(self.slice_size)):
            (self.encoder(part) * g).sum().backward()

    def step(self, view1, view2):
        z1 = self.encode(view1).requires_grad_()
        z2 = self.encode(view2).requires_grad_()
        loss = info_nce(z1, z2)
        g1, g2 = torch.autograd.grad(loss, [z1, z2])
        self.push(view1, g1)
        self.push(view2, g2)
        return loss.detach()


def glyphs(n, gen):
    """Sparse 3x3 stroke patterns on a 12x12 canvas; the label is the pattern."""
    bank = (torch.rand(16, 3, 3, generator=torch.Generator().manual_seed(99)) > 0.5).float()
    label = torch.randint(0, 16, (n,), generator=gen)
    small = bank[label].repeat_interleave(3, 1).repeat_interleave(3, 2)
    return F.pad(small, (1, 2, 1, 2)).unsqueeze(1), label


def augment(x, gen):
    shift = torch.randint(-1, 2, (2,), generator=gen).tolist()
    scale = 0.7 + 0.6 * torch.rand(len(x), 1, 1, 1, generator=gen)
    noise = 0.3 * torch.randn(x.shape, generator=gen)
    return x.roll(shift, (2, 3)) * scale + noise


def knn_accuracy(encoder, bank, bank_label, query, label):
    encoder.eval()
    with torch.no_grad():
        nearest = (encoder(query) @ encoder(bank).t()).argmax(1)
    encoder.train()
    return (bank_label[nearest] == label).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--slice", type=int, default=32)
    parser.add_argument("--steps", type=int, default=45)
    parser.add_argument("--lr", type=float, default=2e-3)
    args, _ = parser.parse_known_args()

    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(1)
    data, label = glyphs(2048, gen)
    query, query_label = glyphs(256, gen)
    encoder = Encoder()
    trainer = SlicedContrast(encoder, args.slice)
    opt = torch.optim.AdamW(encoder.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        x = data[torch.randint(0, len(data), (args.batch,), generator=gen)]
        opt.zero_grad()
        loss = trainer.step(augment(x, gen), augment(x, gen))
        opt.step()
        if step % 15 == 0:
            acc = knn_accuracy(encoder, augment(data[:512], gen), label[:512], augment(query, gen), query_label)
            print(f"step {step} loss {loss.item():.3f} knn {acc:.2f}")
    return encoder, trainer


if __name__ == "__main__":
    encoder, trainer = main()
