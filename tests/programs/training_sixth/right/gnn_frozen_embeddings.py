"""Node classification with pretrained node embeddings kept fixed and a jointly trained GraphSAGE head."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def stochastic_block_model(n=240, classes=4, p_in=0.15, p_out=0.02):
    y = torch.arange(n) % classes
    prob = torch.where(y[:, None] == y[None], torch.tensor(p_in), torch.tensor(p_out))
    upper = torch.triu(torch.rand(n, n) < prob, 1).float()
    return upper + upper.t(), y


def spectral_embedding(adj, dim):
    d = adj.sum(1).clamp(min=1).rsqrt()
    _, vectors = torch.linalg.eigh(d[:, None] * adj * d[None])
    return vectors[:, -dim:] * 10


class SAGELayer(nn.Module):
    def __init__(self, in_dim, out_dim):
        super().__init__()
        self.own = nn.Linear(in_dim, out_dim)
        self.neighbour = nn.Linear(in_dim, out_dim, bias=False)

    def forward(self, x, adj):
        mean = adj @ x / adj.sum(1, keepdim=True).clamp(min=1)
        return self.own(x) + self.neighbour(mean)


class NodeClassifier(nn.Module):
    def __init__(self, pretrained, hidden, classes, dropout=0.4):
        super().__init__()
        self.fixed = nn.Embedding.from_pretrained(pretrained, freeze=True)
        self.learned = nn.Embedding(pretrained.size(0), 4)
        self.layer1 = SAGELayer(pretrained.size(1) + 4, hidden)
        self.layer2 = SAGELayer(hidden, classes)
        self.dropout = dropout

    def forward(self, nodes, adj):
        x = torch.cat([self.fixed(nodes), self.learned(nodes)], dim=1)
        h = F.relu(self.layer1(x, adj))
        h = F.dropout(h, self.dropout, training=self.training)
        return self.layer2(h, adj)


def accuracy(logits, y, mask):
    return (logits[mask].argmax(1) == y[mask]).float().mean().item()


torch.manual_seed(9)
adj, y = stochastic_block_model()
nodes = torch.arange(y.numel())
order = torch.randperm(y.numel())
train, valid, test = order[:40], order[40:100], order[100:]
model = NodeClassifier(spectral_embedding(adj, 6), 24, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
best, best_state = 0.0, None
for epoch in range(100):
    model.train()
    loss = F.cross_entropy(model(nodes, adj)[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        acc = accuracy(model(nodes, adj), y, valid)
    if acc > best:
        best, best_state = acc, copy.deepcopy(model.state_dict())
    if epoch % 25 == 0:
        print(f"epoch {epoch} loss {loss.item():.3f} valid {acc:.3f}")
model.load_state_dict(best_state)
model.eval()
with torch.no_grad():
    print(f"test accuracy {accuracy(model(nodes, adj), y, test):.3f}")
