import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryStore:
    def __init__(self, num_nodes, dim):
        self.array = np.zeros((num_nodes, dim), dtype=np.float32)
        self.tensor = torch.from_numpy(self.array)

    def read(self, nodes):
        return self.tensor[nodes]

    def write(self, nodes, values):
        self.array[nodes.numpy()] = values.detach().numpy()

    def decay(self, factor):
        self.tensor.mul_(factor)

    def clear(self):
        self.array.fill(0.0)


class GraphLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.own = nn.Linear(dim, dim)
        self.neigh = nn.Linear(dim, dim, bias=False)

    def forward(self, h, src, dst):
        agg = torch.zeros_like(h)
        agg.index_add_(0, dst, self.neigh(h)[src])
        degree = torch.zeros(h.shape[0], 1).index_add_(0, dst, torch.ones(len(dst), 1)).clamp_(min=1)
        agg /= degree
        return self.own(h).add_(agg).relu_()


class MemoryGNN(nn.Module):
    def __init__(self, feat=5, dim=16):
        super().__init__()
        self.encode = nn.Linear(feat, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.layer = GraphLayer(dim)
        self.head = nn.Linear(dim, 1)

    def forward(self, x, mem, src, dst):
        new = self.cell(self.encode(x).tanh_(), mem)
        return self.head(self.layer(new, src, dst)).squeeze(1), new


def snapshot(step, num_nodes, pick=24):
    nodes = torch.randperm(num_nodes)[:pick]
    x = torch.randn(pick, 5)
    src, dst = torch.randint(0, pick, (2, 60))
    y = torch.sin(0.3 * step + x[:, 0]) + 0.1 * nodes.float() / num_nodes
    return nodes, x, src, dst, y


def train(num_nodes=40, epochs=3, steps=12):
    torch.manual_seed(20)
    store, model = MemoryStore(num_nodes, 16), MemoryGNN()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        store.clear()
        total = 0.0
        for step in range(steps):
            nodes, x, src, dst, y = snapshot(step, num_nodes)
            pred, new = model(x, store.read(nodes), src, dst)
            store.write(nodes, new)
            loss = F.mse_loss(pred, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            store.decay(0.95)
            total += loss.item()
        print(f"epoch {epoch} loss {total / steps:.4f}")


if __name__ == "__main__":
    train()
