"""Link prediction with a two-layer GCN encoder, early stopping on validation AUC."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)


def make_graph(n=200, blocks=4, p_in=0.12, p_out=0.02):
    label = torch.arange(n) % blocks
    same = label[:, None] == label[None, :]
    prob = torch.where(same, torch.tensor(p_in), torch.tensor(p_out))
    upper = torch.triu(torch.rand(n, n) < prob, diagonal=1)
    edges = upper.nonzero().t()
    features = F.one_hot(label, blocks).float() + 0.9 * torch.randn(n, blocks)
    return torch.cat([features, torch.randn(n, 12)], dim=1), edges


def split_edges(edges, ratios=(0.7, 0.15)):
    edges = edges[:, torch.randperm(edges.size(1))]
    a = int(ratios[0] * edges.size(1))
    b = int((ratios[0] + ratios[1]) * edges.size(1))
    return edges[:, :a], edges[:, a:b], edges[:, b:]


def normalized_adjacency(edges, n):
    adj = torch.eye(n)
    adj[edges[0], edges[1]] = 1.0
    adj[edges[1], edges[0]] = 1.0
    d = adj.sum(1).rsqrt()
    return d[:, None] * adj * d[None, :]


class GCNEncoder(nn.Module):
    def __init__(self, in_dim, hidden, out_dim):
        super().__init__()
        self.lin1 = nn.Linear(in_dim, hidden)
        self.lin2 = nn.Linear(hidden, out_dim)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x, adj):
        h = F.relu(adj @ self.lin1(x))
        return adj @ self.lin2(self.dropout(h))


def score(z, edges):
    return (z[edges[0]] * z[edges[1]]).sum(dim=1)


def auc(pos, neg):
    return (pos[:, None] > neg[None, :]).float().mean().item()


@torch.no_grad()
def evaluate(model, x, adj, pos, neg):
    model.eval()
    z = model(x, adj)
    return auc(score(z, pos), score(z, neg))


x, edges = make_graph()
n = x.size(0)
train_e, val_e, test_e = split_edges(edges)
adj = normalized_adjacency(train_e, n)
val_neg = torch.randint(0, n, val_e.shape)
test_neg = torch.randint(0, n, test_e.shape)

model = GCNEncoder(x.size(1), 32, 16)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)

best_auc, best_epoch, best_state = 0.0, -1, None
val_history = []
for epoch in range(150):
    model.train()
    neg = torch.randint(0, n, train_e.shape)
    z = model(x, adj)
    logits = torch.cat([score(z, train_e), score(z, neg)])
    target = torch.cat([torch.ones(train_e.size(1)), torch.zeros(neg.size(1))])
    loss = F.binary_cross_entropy_with_logits(logits, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    val_auc = evaluate(model, x, adj, val_e, val_neg)
    val_history.append(val_auc)
    if val_auc > best_auc:
        best_auc, best_epoch = val_auc, epoch
        best_state = model.state_dict()
    if epoch % 30 == 0:
        print(f"epoch {epoch} loss {loss.item():.4f} val auc {val_auc:.4f}")

model.load_state_dict(best_state)
test_auc = evaluate(model, x, adj, test_e, test_neg)
print(f"best epoch {best_epoch} val {best_auc:.4f} test {test_auc:.4f}")
