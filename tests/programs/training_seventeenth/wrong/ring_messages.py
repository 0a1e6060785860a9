"""Message passing network that predicts a spectral-like property of random sparse molecules."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)

N_TYPES = 6
CHARGE = torch.tensor([0.1, -0.4, 0.8, 1.3, -0.9, 0.5])


def random_molecule():
    n = int(torch.randint(8, 15, (1,)))
    types = torch.randint(0, N_TYPES, (n,))
    pairs = {(int(torch.randint(0, v, (1,))), v) for v in range(1, n)}
    for _ in range(n // 2):
        a, b = torch.randperm(n)[:2].tolist()
        pairs.add((min(a, b), max(a, b)))
    pairs = torch.tensor(sorted(pairs)).t()
    edges = torch.cat([pairs, pairs.flip(0)], dim=1)
    q = CHARGE[types]
    field = torch.zeros(n).index_add(0, edges[1], q[edges[0]])
    y = torch.tanh(q * field).sum() + 0.3 * field.abs().sum()
    return types, edges, y


def collate(molecules):
    types, edges, graph, ys, offset = [], [], [], [], 0
    for g, (t, e, y) in enumerate(molecules):
        types.append(t)
        edges.append(e + offset)
        graph.append(torch.full_like(t, g))
        ys.append(y)
        offset += len(t)
    return torch.cat(types), torch.cat(edges, dim=1), torch.cat(graph), torch.stack(ys)


class EdgeUpdate(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.norm = nn.LayerNorm(dim)

    def forward(self, h, edges):
        src, dst = edges
        m = self.message(torch.cat([h[src], h[dst]], dim=-1))
        inbox = torch.zeros_like(h)
        inbox[dst] += m
        return self.norm(h + self.update(torch.cat([h, inbox], dim=-1)))


class MoleculeNet(nn.Module):
    def __init__(self, dim=32, depth=2):
        super().__init__()
        self.embed = nn.Embedding(N_TYPES, dim)
        self.layers = nn.ModuleList(EdgeUpdate(dim) for _ in range(depth))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, types, edges, graph, n_graphs):
        h = self.embed(types)
        for layer in self.layers:
            h = layer(h, edges)
        per_atom = self.readout(h).squeeze(-1)
        return torch.zeros(n_graphs).index_add(0, graph, per_atom)


train_set = [random_molecule() for _ in range(400)]
test_set = [random_molecule() for _ in range(200)]
targets = torch.stack([m[2] for m in train_set])
mean, std = targets.mean(), targets.std()

net = MoleculeNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
EPOCHS = 25
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=EPOCHS * 13)

for epoch in range(EPOCHS):
    net.train()
    total = 0.0
    for idx in torch.randperm(len(train_set)).split(32):
        types, edges, graph, y = collate([train_set[i] for i in idx.tolist()])
        pred = net(types, edges, graph, len(idx))
        loss = F.mse_loss(pred, (y - mean) / std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(idx)
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1:2d}  train mse {total / len(train_set):.4f}")

net.eval()
with torch.no_grad():
    types, edges, graph, y = collate(test_set)
    pred = net(types, edges, graph, len(test_set)) * std + mean
test_mae = (pred - y).abs().mean().item()
print(f"test MAE {test_mae:.4f}  target std {std:.4f}")
