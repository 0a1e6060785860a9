import torch
import torch.nn as nn
import torch.nn.functional as F


class GatedAdjacency(nn.Module):
    def __init__(self, edges, n_nodes):
        super().__init__()
        self.register_buffer("edges", edges)
        self.gate = nn.Parameter(torch.zeros(edges.shape[1]))
        self.n_nodes = n_nodes
        self._cached = None

    def build(self):
        src, dst = self.edges
        weight = torch.sigmoid(self.gate)
        dense = torch.zeros(self.n_nodes, self.n_nodes).index_put((dst, src), weight, accumulate=True)
        dense = dense + torch.eye(self.n_nodes)
        scale = dense.sum(dim=1).clamp(min=1e-6).rsqrt()
        return scale[:, None] * dense * scale[None, :]

    def forward(self):
        if self._cached is None:
            self._cached = self.build()
        return self._cached

    def invalidate(self):
        self._cached = None


class GCN(nn.Module):
    def __init__(self, edges, n_nodes, n_in, n_classes, width=16):
        super().__init__()
        self.adjacency = GatedAdjacency(edges, n_nodes)
        self.lin1, self.lin2 = nn.Linear(n_in, width), nn.Linear(width, n_classes)

    def forward(self, x):
        h = F.relu(self.adjacency() @ self.lin1(x))
        return self.adjacency() @ self.lin2(h)


class Runner:
    def __init__(self, model, graph):
        self.model = model
        self.x, self.y, self.train_mask = graph
        self.optimizer = torch.optim.Adam(
            [
                {"params": model.adjacency.parameters(), "lr": 0.05},
                {"params": [*model.lin1.parameters(), *model.lin2.parameters()], "lr": 0.01, "weight_decay": 5e-4},
            ]
        )

    def train_epoch(self):
        self.model.train()
        loss = F.cross_entropy(self.model(self.x)[self.train_mask], self.y[self.train_mask])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.model.adjacency.invalidate()
        return loss.item()

    @torch.no_grad()
    def test(self):
        self.model.eval()
        hit = self.model(self.x).argmax(dim=1) == self.y
        return hit[~self.train_mask].float().mean().item()


def make_graph(n=60, n_classes=3, n_in=12):
    y = torch.arange(n) % n_classes
    x = torch.randn(n, n_in) + 0.6 * F.one_hot(y, n_in).float()
    pairs = torch.randint(0, n, (2, 400))
    same = y[pairs[0]] == y[pairs[1]]
    keep = same | (torch.rand(400) < 0.4)
    train_mask = torch.rand(n) < 0.5
    return pairs[:, keep], (x, y, train_mask)


def main(epochs=60):
    torch.manual_seed(0)
    edges, graph = make_graph()
    runner = Runner(GCN(edges, 60, 12, 3), graph)
    for epoch in range(epochs):
        loss = runner.train_epoch()
        accuracy = runner.test()
        if epoch % 20 == 0:
            print(f"epoch {epoch} loss {loss:.4f} test accuracy {accuracy:.3f}")
    return runner


if __name__ == "__main__":
    runner = main()
