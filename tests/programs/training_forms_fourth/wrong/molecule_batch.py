import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(19)


class MoleculeDataset(Dataset):
    def __init__(self, size):
        self.graphs = [self._make_graph() for _ in range(size)]

    def _make_graph(self):
        n = int(torch.randint(5, 12, (1,)))
        x = torch.randn(n, 6)
        chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
        edges = torch.cat([chain, torch.randint(0, n, (2, n // 2))], dim=1)
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        target = (x[edges[0], 0] * x[edges[1], 1]).mean()
        return {"x": x, "edge_index": edges, "y": target}

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        return self.graphs[i]


def collate_graphs(samples):
    xs, edges, batch, ys = [], [], [], []
    for i, g in enumerate(samples):
        xs.append(g["x"])
        edges.append(g["edge_index"])
        batch.append(torch.full((g["x"].size(0),), i, dtype=torch.long))
        ys.append(g["y"])
    return torch.cat(xs), torch.cat(edges, dim=1), torch.cat(batch), torch.stack(ys)


class MessagePassing(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim, dim), nn.ReLU())
        self.update = nn.Linear(2 * dim, dim)

    def forward(self, h, edge_index):
        src, dst = edge_index
        msg = self.message(torch.cat([h[src], h[dst]], dim=-1))
        agg = torch.zeros_like(h).index_add(0, dst, msg)
        return F.relu(self.update(torch.cat([h, agg], dim=-1)))


class GraphRegressor(nn.Module):
    def __init__(self, in_dim=6, dim=32):
        super().__init__()
        self.lift = nn.Linear(in_dim, dim)
        self.layers = nn.ModuleList([MessagePassing(dim), MessagePassing(dim)])
        self.readout = nn.Linear(dim, 1)

    def forward(self, x, edge_index, batch, n_graphs):
        h = F.relu(self.lift(x))
        for layer in self.layers:
            h = layer(h, edge_index)
        pooled = torch.zeros(n_graphs, h.size(1)).index_add(0, batch, h)
        return self.readout(pooled).squeeze(-1)


loader = DataLoader(MoleculeDataset(320), batch_size=32, shuffle=True, collate_fn=collate_graphs)
model = GraphRegressor()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(1, 16):
    losses = []
    for x, edge_index, batch, y in loader:
        loss = F.mse_loss(model(x, edge_index, batch, len(y)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 3 == 0:
        print(f"epoch {epoch} mse {sum(losses) / len(losses):.4f}")
