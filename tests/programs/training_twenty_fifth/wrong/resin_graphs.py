"""Graph-level regression with GIN: predict a property of small molecule-like graphs (a non-linear function of
neighbourhood composition). Graphs are merged into one big disconnected graph per minibatch."""
import random
from collections import namedtuple

import torch
from torch import nn
from torch.utils.data import DataLoader

Graph = namedtuple("Graph", "x edge_index y")
ELEMENTS = 4


def make_graph(rng, gen):
    """Random sparse graph; atoms are numbered as they were drawn."""
    n = rng.randint(6, 14)
    kinds = torch.randint(0, ELEMENTS, (n,), generator=gen)
    adj = (torch.rand(n, n, generator=gen) < 3.4 / n).triu(1)
    adj = adj | adj.t()
    x = nn.functional.one_hot(kinds, ELEMENTS).float()
    charge = torch.tensor([-1.0, -0.3, 0.4, 1.2])[kinds]
    around = adj.float() @ charge
    y = (charge * torch.tanh(0.6 * around)).sum()
    return Graph(x, adj.nonzero().t().contiguous(), y)


def collate(graphs):
    xs, edges, owner, ys = [], [], [], []
    start = 0
    for i, g in enumerate(graphs):
        xs.append(g.x)
        edges.append(g.edge_index + start)
        owner.append(torch.full((len(g.x),), i))
        ys.append(g.y)
        start += int(g.edge_index.max()) + 1
    return torch.cat(xs), torch.cat(edges, 1), torch.cat(owner), torch.stack(ys)


class GINLayer(nn.Module):
    def __init__(self, dim_in, dim_out):
        super().__init__()
        self.eps = nn.Parameter(torch.zeros(1))
        self.mlp = nn.Sequential(nn.Linear(dim_in, dim_out), nn.ReLU(), nn.Linear(dim_out, dim_out))

    def forward(self, x, edge_index):
        src, dst = edge_index
        agg = torch.zeros_like(x).index_add_(0, dst, x[src])
        return self.mlp((1 + self.eps) * x + agg)


class GIN(nn.Module):
    def __init__(self, width=48, layers=2):
        super().__init__()
        dims = [ELEMENTS] + [width] * layers
        self.layers = nn.ModuleList(GINLayer(a, b) for a, b in zip(dims, dims[1:]))
        self.readout = nn.Linear(width, 1)

    def forward(self, x, edge_index, owner, num_graphs):
        for layer in self.layers:
            x = torch.relu(layer(x, edge_index))
        pooled = x.new_zeros(num_graphs, x.shape[1]).index_add_(0, owner, x)
        return self.readout(pooled).squeeze(1)


def mse(model, loader):
    model.eval()
    total = n = 0
    with torch.no_grad():
        for x, e, owner, y in loader:
            total += ((model(x, e, owner, len(y)) - y) ** 2).sum().item()
            n += len(y)
    return total / n


def main(seed=11, epochs=25):
    torch.manual_seed(seed)
    rng, gen = random.Random(seed), torch.Generator().manual_seed(seed)
    graphs = [make_graph(rng, gen) for _ in range(900)]
    train = DataLoader(graphs[:700], batch_size=16, shuffle=True, collate_fn=collate)
    test = DataLoader(graphs[700:], batch_size=20, collate_fn=collate)
    variance = torch.stack([g.y for g in graphs[700:]]).var().item()

    model = GIN()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        model.train()
        for x, e, owner, y in train:
            loss = nn.functional.mse_loss(model(x, e, owner, len(y)), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 4 == 0 or epoch == epochs - 1:
            print(f"epoch {epoch:2d}  train {loss.item():.3f}  test R2 {1 - mse(model, test) / variance:.3f}")
    return model, graphs, 1 - mse(model, test) / variance


if __name__ == "__main__":
    model, graphs, r2 = main()
