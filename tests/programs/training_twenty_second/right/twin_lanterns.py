"""SimCLR-style pretraining with a large batch on little memory (GradCache, Gao et al. 2021)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Args:
    batch: int = 256
    chunk: int = 64
    steps: int = 60
    temperature: float = 0.2
    lr: float = 1e-3
    seed: int = 0


class Encoder(nn.Module):
    def __init__(self, dim=32, width=64, feat=32, proj=16):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(dim, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, feat))
        self.projector = nn.Sequential(nn.Linear(feat, feat), nn.GELU(), nn.Linear(feat, proj))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=-1)


class Signals:
    """Each sample is a class pattern on half the inputs; augmentation drops inputs and adds jitter."""

    def __init__(self, seed, classes=8, dim=32):
        self.g = torch.Generator().manual_seed(seed)
        self.patterns = torch.randn(classes, dim, generator=self.g)

    def sample(self, n):
        y = torch.randint(len(self.patterns), (n,), generator=self.g)
        return self.patterns[y] + 0.6 * torch.randn(n, self.patterns.size(1), generator=self.g), y

    def augment(self, x):
        keep = (torch.rand(x.shape, generator=self.g) > 0.25).float()
        return x * keep + 0.2 * torch.randn(x.shape, generator=self.g)


def nt_xent(za, zb, temperature):
    z = torch.cat([za, zb])
    n = len(za)
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    target = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, target)


def cached_backward(encoder, views, chunk, temperature):
    """Backward of the full-batch contrastive loss with activations of one chunk only."""
    chunks = [v.split(chunk) for v in views]

    # 1. embeddings without graph
    with torch.no_grad():
        reps = [torch.cat([encoder(c) for c in cs]) for cs in chunks]

    # 2. the loss, down to the embeddings
    leaves = [r.detach().requires_grad_() for r in reps]
    loss = nt_xent(*leaves, temperature)
    loss.backward()

    # 3. chunk by chunk, from the embeddings to the weights
    for cs, leaf in zip(chunks, leaves):
        for c, g in zip(cs, leaf.grad.split(chunk)):
            encoder(c).backward(gradient=g)
    return loss.detach()


def probe(encoder, data, n=1500):
    """Accuracy of a closed-form ridge probe on frozen features."""
    with torch.no_grad():
        (xa, ya), (xb, yb) = data.sample(n), data.sample(n)
        fa, fb = encoder.backbone(xa), encoder.backbone(xb)
        fa, fb = (torch.cat([f, torch.ones(len(f), 1)], dim=1) for f in (fa, fb))
        w = torch.linalg.solve(fa.t() @ fa + 1e-2 * torch.eye(fa.size(1)), fa.t() @ F.one_hot(ya).float())
        return ((fb @ w).argmax(1) == yb).float().mean().item()


def main(args=Args()):
    torch.manual_seed(args.seed)
    data = Signals(args.seed + 1)
    encoder = Encoder()
    opt = torch.optim.AdamW(encoder.parameters(), lr=args.lr, weight_decay=1e-4)
    for step in range(args.steps):
        x, _ = data.sample(args.batch)
        opt.zero_grad()
        loss = cached_backward(encoder, (data.augment(x), data.augment(x)), args.chunk, args.temperature)
        opt.step()
        if step % 15 == 14:
            print(f"step {step + 1:3d}  nt-xent {loss.item():.4f}")
    accuracy = probe(encoder, data)
    print(f"linear probe accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
