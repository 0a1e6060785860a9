"""Node classification in mini-batches with historical embeddings (GNNAutoScale, Fey et al. 2021), two SAGE layers.

Users of a forum answer each other mostly within their community. A batch holds some users only; for neighbours outside of
the batch the second layer reads the embedding of their last visit.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

USERS, COMMUNITIES, FEATS, HIDDEN = 900, 5, 20, 32


def make_forum(gen):
    community = torch.randint(0, COMMUNITIES, (USERS,), generator=gen)
    same = community[:, None] == community[None, :]
    rate = torch.where(same, 0.025, 0.004)
    adj = (torch.rand(USERS, USERS, generator=gen) < rate).triu(1).float()
    adj = adj + adj.t()
    taste = torch.randn(COMMUNITIES, FEATS, generator=gen)
    feats = 0.25 * taste[community] + torch.randn(USERS, FEATS, generator=gen)
    return feats, community, adj / adj.sum(1, keepdim=True).clamp(min=1)


class HistorySAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.self1, self.near1 = nn.Linear(FEATS, HIDDEN), nn.Linear(FEATS, HIDDEN, bias=False)
        self.self2, self.near2 = nn.Linear(HIDDEN, COMMUNITIES), nn.Linear(HIDDEN, COMMUNITIES, bias=False)
        self.drop = nn.Dropout(0.3)
        self.register_buffer("history", torch.zeros(USERS, HIDDEN), persistent=False)

    def layer1(self, x, adj_rows, nodes):
        return F.relu(self.self1(x[nodes]) + self.near1(adj_rows @ x))

    def layer2(self, h_nodes, h_near):
        return self.self2(h_nodes) + self.near2(h_near)

    def forward(self, x, adj, nodes):
        rows = adj[nodes]
        h = self.layer1(x, rows, nodes)
        with torch.no_grad():
            self.history[nodes] = h
        outside = self.history.clone()
        outside[nodes] = 0.0
        # inside the batch with gradient, outside of it as stored
        h = self.drop(h)
        near = rows[:, nodes] @ h + rows @ outside
        return self.layer2(h, near)

    @torch.no_grad()
    def full(self, x, adj):
        everyone = torch.arange(USERS)
        h = self.layer1(x, adj, everyone)
        return self.layer2(h, adj @ h), h


def fit(epochs=24, batch=150):
    torch.manual_seed(61)
    gen = torch.Generator().manual_seed(62)
    x, y, adj = make_forum(gen)
    order = torch.randperm(USERS, generator=gen)
    labelled = torch.zeros(USERS, dtype=torch.bool)
    labelled[order[:180]] = True
    test = order[400:]

    model = HistorySAGE()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=2e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        total = 0.0
        for nodes in torch.randperm(USERS, generator=gen).split(batch):
            logits = model(x, adj, nodes)
            mask = labelled[nodes]
            # users without a label are in the batch for their embeddings; weights keep the sum over an epoch
            loss = F.cross_entropy(logits[mask], y[nodes][mask], reduction="sum") / (labelled.sum() * batch / USERS)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * batch / USERS
        if epoch % 6 == 0:
            model.eval()
            logits, h = model.full(x, adj)
            acc = (logits[test].argmax(1) == y[test]).float().mean().item()
            stale = ((model.history - h).norm() / h.norm()).item()
            print(f"epoch {epoch:2d}  loss {total:.3f}  test acc {acc:.3f}  staleness {stale:.3f}")
    return acc, x, y, adj, order


def features_only(x, y, order, steps=200):
    probe = nn.Linear(FEATS, COMMUNITIES)
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.02, weight_decay=2e-3)
    train, test = order[:180], order[400:]
    for _ in range(steps):
        loss = F.cross_entropy(probe(x[train]), y[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (probe(x[test]).argmax(1) == y[test]).float().mean().item()


if __name__ == "__main__":
    acc, x, y, adj, order = fit()
    print(f"without the graph {features_only(x, y, order):.3f}, with it {acc:.3f}")
