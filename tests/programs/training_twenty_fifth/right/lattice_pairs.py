"""Contrastive pre-training of a graph encoder: two noisy observations of the same graph form a pair.

InfoNCE wants many negatives, memory wants small batches, so the encoder runs in slices of `slice_size` graphs and the
loss is taken over the whole batch of embeddings.
"""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    nodes: int = 12
    features: int = 4
    dim: int = 32
    batch: int = 96
    slice_size: int = 24
    steps: int = 100
    temperature: float = 0.2
    lr: float = 3e-3
    seed: int = 9


def sample_graphs(n, o, gen):
    """Geometric graphs: nodes are points in the plane, near ones are linked."""
    pos = torch.rand(n, o.nodes, 2, generator=gen)
    adj = (torch.cdist(pos, pos) < 0.35).float() * (1 - torch.eye(o.nodes))
    return torch.randn(n, o.nodes, o.features, generator=gen), adj


def observe(graphs, gen, edge_drop=0.1, noise=0.7):
    """A noisy view: nodes in another order, some edges lost, node features disturbed."""
    x, adj = graphs
    order = torch.rand(x.shape[:2], generator=gen).argsort(1)
    x = x.gather(1, order[..., None].expand_as(x))
    adj = adj.gather(1, order[:, :, None].expand_as(adj)).gather(2, order[:, None, :].expand_as(adj))
    keep = (torch.rand(adj.shape, generator=gen) > edge_drop).float().triu(1)
    return x + noise * torch.randn(x.shape, generator=gen), adj * (keep + keep.transpose(1, 2))


class Encoder(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.lift = nn.Linear(o.features, o.dim)
        self.mix = nn.ModuleList(nn.Linear(2 * o.dim, o.dim) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(o.dim) for _ in range(2))
        self.out = nn.Linear(o.dim, o.dim)

    def forward(self, x, adj):
        h = self.lift(x)
        adj = adj / adj.sum(-1, keepdim=True).clamp(min=1)
        for lin, norm in zip(self.mix, self.norms):
            h = h + F.gelu(lin(torch.cat([norm(h), adj @ h], -1)))
        return F.normalize(self.out(h.mean(1)), dim=-1)


def info_nce(a, b, temperature):
    logits = a @ b.t() / temperature
    target = torch.arange(len(a))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def slices(view, size):
    return zip(view[0].split(size), view[1].split(size))


def backward_in_slices(encoder, views, o):
    with torch.no_grad():
        flat = [torch.cat([encoder(x, adj) for x, adj in slices(v, o.slice_size)]) for v in views]
    flat = [z.detach().requires_grad_() for z in flat]
    loss = info_nce(*flat, o.temperature)
    loss.backward()
    for view, z in zip(views, flat):
        for (x, adj), g in zip(slices(view, o.slice_size), z.grad.split(o.slice_size)):
            encoder(x, adj).backward(g)
    return loss.item()


@torch.no_grad()
def retrieval(encoder, graphs, gen):
    """How often the nearest second view is the one of the same graph."""
    a, b = (encoder(*observe(graphs, gen)) for _ in range(2))
    return ((a @ b.t()).argmax(1) == torch.arange(len(a))).float().mean().item()


def main(o):
    torch.manual_seed(o.seed)
    gen = torch.Generator().manual_seed(o.seed)
    test = sample_graphs(200, o, gen)
    encoder = Encoder(o)
    opt = torch.optim.AdamW(encoder.parameters(), lr=o.lr, weight_decay=1e-4)
    print(f"untrained: retrieval {retrieval(encoder, test, gen):.3f}")
    for step in range(1, o.steps + 1):
        graphs = sample_graphs(o.batch, o, gen)
        opt.zero_grad()
        loss = backward_in_slices(encoder, [observe(graphs, gen), observe(graphs, gen)], o)
        opt.step()
        if step % 25 == 0:
            print(f"step {step:3d}: loss {loss:.3f}  retrieval {retrieval(encoder, test, gen):.3f}")
    return encoder, gen


if __name__ == "__main__":
    encoder, gen = main(Options())
