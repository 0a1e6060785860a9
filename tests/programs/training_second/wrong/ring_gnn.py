import torch
from torch import nn

torch.manual_seed(8)


class MessageLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.update = nn.GRUCell(dim, dim)

    def forward(self, h, edges):
        src, dst = edges
        msg = self.message(torch.cat([h[src], h[dst]], dim=1))
        inbox = torch.zeros_like(h)
        inbox[dst] += msg
        return self.update(inbox, h)


class GraphNet(nn.Module):
    def __init__(self, atoms, dim, rounds):
        super().__init__()
        self.embed = nn.Embedding(atoms, dim)
        self.layers = nn.ModuleList(MessageLayer(dim) for _ in range(rounds))
        self.readout = nn.Linear(dim, 1)

    def forward(self, kinds, edges, graph, count):
        h = self.embed(kinds)
        for layer in self.layers:
            h = layer(h, edges)
        pooled = h.new_zeros(count, h.shape[1]).index_add(0, graph, h)
        return self.readout(pooled).squeeze(1)


def random_graph(nodes):
    kinds = torch.randint(0, 4, (nodes,))
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    extra = torch.randint(0, nodes, (2, nodes // 2))
    extra = extra[:, extra[0] != extra[1]]
    edges = torch.cat([ring, extra], dim=1)
    edges = torch.cat([edges, edges.flip(0)], dim=1)
    charge = torch.tensor([0.0, 1.0, -1.0, 0.5])[kinds]
    energy = (charge[edges[0]] * charge[edges[1]]).sum() / nodes
    return kinds, edges, energy


def collate(items):
    kinds, edges, graph, energy, offset = [], [], [], [], 0
    for i, (k, e, y) in enumerate(items):
        kinds.append(k)
        edges.append(e + offset)
        graph.append(torch.full((len(k),), i))
        energy.append(y)
        offset += len(k)
    return torch.cat(kinds), torch.cat(edges, 1), torch.cat(graph), torch.stack(energy)


data = [random_graph(int(n)) for n in torch.randint(5, 10, (96,))]
train, test = data[:72], data[72:]
model = GraphNet(atoms=4, dim=16, rounds=2)
optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)

for epoch in range(12):
    order = torch.randperm(len(train)).tolist()
    running = 0.0
    for start in range(0, len(order), 12):
        kinds, edges, graph, energy = collate([train[i] for i in order[start : start + 12]])
        pred = model(kinds, edges, graph, len(energy))
        loss = nn.functional.mse_loss(pred, energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() * len(energy)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} train mse {running / len(train):.4f}")

with torch.no_grad():
    kinds, edges, graph, energy = collate(test)
    error = nn.functional.mse_loss(model(kinds, edges, graph, len(energy)), energy)
print(f"test mse {error:.4f}, variance {energy.var():.4f}")
