"""Graph network on mini-batches of clusters, with a history of node states for what lies outside the batch.

Inside the batch the first-layer states are computed afresh and get gradients; the states of neighbours in
other clusters are looked up as they were when those clusters were last visited. The test runs on the whole graph.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)
NODES, CLASSES, FEATURES, HIDDEN, PARTS = 1200, 6, 32, 32, 8


def make_graph(gen):
    topic = torch.randint(0, CLASSES, (NODES,), generator=gen)
    means = torch.randn(CLASSES, FEATURES, generator=gen)
    x = 0.25 * means[topic] + torch.randn(NODES, FEATURES, generator=gen)
    pairs = torch.randint(0, NODES, (2, 60000), generator=gen)
    same = topic[pairs[0]] == topic[pairs[1]]
    keep = torch.rand(60000, generator=gen) < torch.where(same, 0.4, 0.04)
    pairs = pairs[:, keep & (pairs[0] != pairs[1])]
    edges = torch.cat([pairs, pairs.flip(0), torch.arange(NODES).repeat(2, 1)], dim=1).unique(dim=1)
    degree = torch.bincount(edges[1], minlength=NODES).float()
    norm = (degree[edges[0]] * degree[edges[1]]).rsqrt()
    return x, topic, torch.sparse_coo_tensor(edges.flip(0), norm, (NODES, NODES), check_invariants=True).coalesce()


class HistoryGCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(FEATURES, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.out = nn.Linear(HIDDEN, CLASSES)
        self.register_buffer("history", torch.zeros(NODES, HIDDEN), persistent=False)
        self.register_buffer("age", torch.zeros(NODES, dtype=torch.long), persistent=False)

    def layer1(self, adj_rows, x):
        return F.relu(self.norm(self.first(torch.sparse.mm(adj_rows, x))))

    def layer2(self, adj_rows, h):
        return self.out(F.relu(self.second(torch.sparse.mm(adj_rows, h))))

    def forward(self, adj, x):
        return self.layer2(adj, self.layer1(adj, x))

    def forward_part(self, adj_rows, x, nodes):
        fresh = self.layer1(adj_rows, x)
        states = self.history.index_copy(0, nodes, fresh)
        logits = self.layer2(adj_rows, F.dropout(states, 0.3, self.training))
        with torch.no_grad():
            self.history[nodes] = fresh
            self.age += 1
            self.age[nodes] = 0
        return logits


@torch.no_grad()
def refresh(model, adj, x):
    model.history.copy_(model.layer1(adj, x))
    model.age.zero_()


@torch.no_grad()
def accuracy(model, adj, x, topic, nodes):
    model.eval()
    result = (model(adj, x).argmax(1) == topic)[nodes].float().mean().item()
    model.train()
    return result


@torch.no_grad()
def staleness(model, adj, x):
    exact = model.layer1(adj, x)
    return ((model.history - exact).norm() / exact.norm()).item()


gen = torch.Generator().manual_seed(3)
x, topic, adj = make_graph(gen)
order = torch.randperm(NODES, generator=gen)
is_train = torch.zeros(NODES, dtype=torch.bool)
is_train[order[:240]] = True
test = order[500:]
parts = [p.sort().values for p in torch.randperm(NODES, generator=gen).chunk(PARTS)]
rows = [adj.index_select(0, p) for p in parts]

model = HistoryGCN()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
refresh(model, adj, x)
for epoch in range(20):
    total = 0.0
    for i in torch.randperm(PARTS).tolist():
        logits = model.forward_part(rows[i], x, parts[i])
        labelled = is_train[parts[i]]
        loss = F.cross_entropy(logits[labelled], topic[parts[i]][labelled])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if (epoch + 1) % 5 == 0:
        print(f"epoch {epoch + 1}: loss {total / PARTS:.3f}, error of the history "
              f"{staleness(model, adj, x):.3f}, oldest entry {model.age.max().item()} steps")

print(f"train accuracy {accuracy(model, adj, x, topic, is_train):.3f}")
print(f"test accuracy {accuracy(model, adj, x, topic, test):.3f}")
