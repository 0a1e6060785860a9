"""Mini-batch GNN training: neighbours outside the batch are
read from a table of earlier embeddings.
"""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)

N, CLASSES, FEATS, HIDDEN = 600, 4, 16, 32


def community_graph():
    y = torch.randint(0, CLASSES, (N,))
    prob = torch.where(y[:, None] == y[None, :], 0.03, 0.006)
    adj = (torch.rand(N, N) < prob).float().triu(1)
    adj = adj + adj.T + torch.eye(N)
    adj = adj / adj.sum(1, keepdim=True)
    x = 0.5 * torch.randn(CLASSES, FEATS)[y] + torch.randn(N, FEATS)
    train = torch.zeros(N, dtype=torch.bool)
    train[torch.randperm(N)[:200]] = True
    return adj, x, y, train


class History(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.register_buffer("table", torch.zeros(n, dim), persistent=False)

    @torch.no_grad()
    def push(self, rows, values):
        self.table[rows] = values

    def merge(self, rows, fresh):
        """All rows from the table, those of the batch with their fresh values."""
        return self.table.clone().index_copy(0, rows, fresh)


class HistoryGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([
            nn.Linear(FEATS, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, CLASSES)])
        self.histories = nn.ModuleList([History(N, HIDDEN), History(N, HIDDEN)])

    def batch_forward(self, adj, x, rows):
        h = F.relu(self.layers[0](adj[rows] @ x))
        for layer, history in zip(self.layers[1:], self.histories):
            history.push(rows, h.detach())
            h = layer(adj[rows] @ history.merge(rows, h))
            if layer is not self.layers[-1]:
                h = F.relu(h)
        return h

    @torch.no_grad()
    def full_forward(self, adj, x):
        h = x
        for i, layer in enumerate(self.layers):
            h = layer(adj @ h)
            if i < len(self.layers) - 1:
                h = F.relu(h)
                self.histories[i].push(slice(None), h)
        return h


def clusters(adj, size=100):
    """Cheap partition: order nodes by a few smoothing steps of a random signal."""
    signal = torch.randn(N, 1)
    for _ in range(6):
        signal = adj @ signal
        signal = signal - signal.mean()
    return signal.squeeze(1).argsort().split(size)


def main(epochs=45):
    adj, x, y, train = community_graph()
    parts = clusters(adj)
    model = HistoryGCN()
    optimizer = torch.optim.Adam([
        {"params": model.layers[:-1].parameters(), "weight_decay": 5e-3},
        {"params": model.layers[-1].parameters(), "weight_decay": 0.0},
    ], lr=5e-3)
    n_train = int(train.sum())
    model.full_forward(adj, x)
    for epoch in range(1, epochs + 1):
        total = 0.0
        for k in torch.randperm(len(parts)).tolist():
            rows = parts[k]
            labelled = train[rows]
            logits = model.batch_forward(adj, x, rows)
            # a batch counts as much as it has labelled nodes
            loss = F.cross_entropy(logits[labelled], y[rows][labelled], reduction="sum")
            loss = loss * len(parts) / n_train
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(parts)
        before = model.histories[1].table.clone()
        logits = model.full_forward(adj, x)
        gap = ((model.histories[1].table - before).norm() / before.norm()).item()
        if epoch % 15 == 0:
            acc = (logits.argmax(1) == y)[~train].float().mean().item()
            print(f"epoch {epoch:3d}  loss {total:.3f}  test acc {acc:.3f}  staleness {gap:.3f}")
    return model, acc


if __name__ == "__main__":
    model, acc = main()
    print(f"final test accuracy {acc:.3f}")
