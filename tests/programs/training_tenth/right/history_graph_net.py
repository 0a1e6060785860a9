"""Node classification in node batches; neighbours outside the batch are read from a store of past embeddings."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
NODES, CLASSES, FEATURES, WIDTH, BATCHES = 600, 5, 16, 32, 6


def make_graph():
    labels = torch.randint(0, CLASSES, (NODES,))
    same = labels[:, None] == labels[None, :]
    upper = torch.rand(NODES, NODES).triu(1)
    edges = (upper > 0) & (upper < torch.where(same, 0.06, 0.006))
    adjacency = (edges | edges.t()).float() + torch.eye(NODES)
    norm = adjacency.sum(1).rsqrt()
    features = 0.5 * torch.randn(CLASSES, FEATURES)[labels] + torch.randn(NODES, FEATURES)
    return norm[:, None] * adjacency * norm[None, :], features, labels


class History(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("store", torch.zeros(NODES, WIDTH), persistent=False)

    def exchange(self, h, batch):
        full = self.store.clone()
        full[batch] = h
        with torch.no_grad():
            self.store[batch] = h
        return full


class HistoryGCN(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.encode = nn.Linear(FEATURES, WIDTH)
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))
        self.histories = nn.ModuleList(History() for _ in range(layers))
        self.classify = nn.Linear(WIDTH, CLASSES)

    def forward(self, features, adjacency, batch):
        h = F.relu(self.encode(features[batch]))
        rows = adjacency[batch]
        for layer, history in zip(self.layers, self.histories):
            h = h + F.relu(layer(rows @ history.exchange(h, batch)))
        return self.classify(h)

    @torch.no_grad()
    def full(self, features, adjacency):
        h = F.relu(self.encode(features))
        for layer in self.layers:
            h = h + F.relu(layer(adjacency @ h))
        return self.classify(h)

    @torch.no_grad()
    def refresh(self, features, adjacency):
        h = F.relu(self.encode(features))
        for layer, history in zip(self.layers, self.histories):
            history.store.copy_(h)
            h = h + F.relu(layer(adjacency @ h))


def accuracy(logits, labels, mask):
    return (logits[mask].argmax(1) == labels[mask]).float().mean().item()


def train(model, graph, train_mask, epochs=40):
    adjacency, features, labels = graph
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.refresh(features, adjacency)
    for _ in range(epochs):
        for batch in torch.randperm(NODES).chunk(BATCHES):
            chosen = train_mask[batch]
            logits = model(features, adjacency, batch)
            loss = F.cross_entropy(logits[chosen], labels[batch][chosen])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return loss.item()


graph = make_graph()
train_mask = torch.rand(NODES) < 0.3
model = HistoryGCN()
loss = train(model, graph, train_mask)
adjacency, features, labels = graph
exact = model.full(features, adjacency)
with torch.no_grad():
    stale = torch.empty_like(exact)
    for batch in torch.arange(NODES).chunk(BATCHES):
        stale[batch] = model(features, adjacency, batch)
print(f"loss {loss:.3f} test accuracy {accuracy(exact, labels, ~train_mask):.3f}", end=" ")
print(f"with stored neighbours {accuracy(stale, labels, ~train_mask):.3f}")
