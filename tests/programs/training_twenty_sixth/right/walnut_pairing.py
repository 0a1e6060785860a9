"""Match two views of the same object with a contrastive loss; the batch is larger than what fits in memory at once."""
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Settings:
    batch_size: int = 192
    chunk: int = 48
    steps: int = 80
    lr: float = 3e-3
    dim: int = 16
    seed: int = 31


def make_views(n, gen):
    """A latent of six numbers, seen through two different fixed sensors."""
    sensor_rng = torch.Generator().manual_seed(123)
    sensor_a = torch.randn(6, 24, generator=sensor_rng)
    sensor_b = torch.randn(6, 32, generator=sensor_rng)
    latent = torch.randn(n, 6, generator=gen)
    a = torch.tanh(latent @ sensor_a) + 0.2 * torch.randn(n, 24, generator=gen)
    b = torch.relu(latent @ sensor_b) + 0.2 * torch.randn(n, 32, generator=gen)
    return a, b


class Tower(nn.Module):
    def __init__(self, n_in, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class PairModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.tower_a = Tower(24, dim)
        self.tower_b = Tower(32, dim)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def contrast(self, za, zb):
        logits = self.log_scale.exp() * za @ zb.t()
        labels = torch.arange(len(za))
        return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


def train_step(model, optimizer, a, b, chunk):
    optimizer.zero_grad()

    # 1. embeddings of the whole batch, chunk by chunk, without keeping any graph
    with torch.no_grad():
        za = torch.cat([model.tower_a(part) for part in a.split(chunk)])
        zb = torch.cat([model.tower_b(part) for part in b.split(chunk)])

    # 2. loss on the full batch of embeddings
    za.requires_grad_()
    zb.requires_grad_()
    loss = model.contrast(za, zb)
    loss.backward()

    # 3. second pass through the towers
    for tower, x, cached in ((model.tower_a, a, za.grad), (model.tower_b, b, zb.grad)):
        for part, grad in zip(x.split(chunk), cached.split(chunk)):
            surrogate = (tower(part) * grad).sum()
            surrogate.backward()

    optimizer.step()
    return loss.item()


@torch.no_grad()
def recall_at_1(model, a, b):
    model.eval()
    similarity = model.tower_a(a) @ model.tower_b(b).t()
    model.train()
    return (similarity.argmax(dim=1) == torch.arange(len(a))).float().mean().item()


def main(cfg=Settings()):
    torch.manual_seed(cfg.seed)
    gen = torch.Generator().manual_seed(cfg.seed)
    a, b = make_views(4000, gen)
    test_a, test_b = make_views(300, gen)

    model = PairModel(cfg.dim)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-4)
    for step in range(1, cfg.steps + 1):
        pick = torch.randperm(len(a), generator=gen)[: cfg.batch_size]
        loss = train_step(model, optimizer, a[pick], b[pick], cfg.chunk)
        if step % 20 == 0:
            print(f"step {step}: loss {loss:.4f}  recall@1 {recall_at_1(model, test_a, test_b):.3f}")
    return model, recall_at_1(model, test_a, test_b)


if __name__ == "__main__":
    model, recall = main()
    print(f"final recall@1 {recall:.3f}")
