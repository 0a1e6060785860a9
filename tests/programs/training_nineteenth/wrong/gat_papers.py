"""Node classification with a graph attention network (Velickovic et al. 2018), rewritten from the seminar notebook.

The graph mixes two kinds of edges: some lead to papers of the same field, most lead to survey papers whose features say
nothing about the field. Attention should learn which neighbours to listen to.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N_PAPERS, N_SURVEYS, N_FIELDS, N_FEATS = 300, 100, 4, 16


def make_graph(seed):
    rng = np.random.default_rng(seed)
    n = N_PAPERS + N_SURVEYS
    field = rng.integers(0, N_FIELDS, n)
    is_survey = np.arange(n) >= N_PAPERS
    feats = rng.normal(0, 1.0, (n, N_FEATS))
    feats[np.arange(n), field] += np.where(is_survey, 0.0, 1.0)
    noisy_field = rng.integers(0, N_FIELDS, n)
    feats[np.arange(n), noisy_field] += np.where(is_survey, 3.0, 0.0)
    feats[:, -1] = np.where(is_survey, 1.5, -0.5) + rng.normal(0, 0.3, n)
    src, dst = [], []
    for v in range(N_PAPERS):
        same = np.flatnonzero((field == field[v]) & ~is_survey)
        for u in np.concatenate([rng.choice(same, 4), rng.integers(N_PAPERS, n, 12), [v]]):
            src.append(u)
            dst.append(v)
    edges = torch.tensor(np.array([src, dst]))
    return torch.tensor(feats, dtype=torch.float32), torch.tensor(field), edges


def edge_softmax(scores, dst, n):
    scores = scores - scores.max()
    weights = scores.exp()
    total = torch.zeros(n, weights.size(1)).index_add(0, dst, weights)
    return weights / (total[dst] + 1e-12)


class GATLayer(nn.Module):
    def __init__(self, in_dim, out_dim, heads):
        super().__init__()
        self.heads, self.out_dim = heads, out_dim
        self.proj = nn.Linear(in_dim, heads * out_dim, bias=False)
        self.bias = nn.Parameter(torch.zeros(heads * out_dim))
        # one vector per head for the sender and one for the receiver, with small initial values
        self.att_src = nn.Parameter(0.05 * torch.randn(heads, out_dim))
        self.att_dst = nn.Parameter(0.05 * torch.randn(heads, out_dim))

    def forward(self, x, edges):
        src, dst = edges
        h = self.proj(x).view(-1, self.heads, self.out_dim)
        score = (h * self.att_src).sum(-1)[src] + (h * self.att_dst).sum(-1)[dst]
        alpha = edge_softmax(F.leaky_relu(score, 0.2), dst, x.size(0))
        messages = alpha.unsqueeze(-1) * h[src]
        out = torch.zeros_like(h).index_add(0, dst, messages)
        return out.flatten(1) + self.bias, alpha


class GAT(nn.Module):
    def __init__(self, hidden=8, heads=4):
        super().__init__()
        self.attend = GATLayer(N_FEATS, hidden, heads)
        self.classify = nn.Linear(hidden * heads, N_FIELDS)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x, edges):
        h, alpha = self.attend(self.dropout(x), edges)
        return self.classify(self.dropout(F.elu(h))), alpha


torch.manual_seed(3)
feats, field, edges = make_graph(seed=5)
order = torch.randperm(N_PAPERS)
train_idx, test_idx = order[:150], order[150:]

model = GAT()
# weight decay on the weight matrices only, as in the reference code
decay = [p for name, p in model.named_parameters() if name.endswith("weight")]
no_decay = [p for name, p in model.named_parameters() if name.endswith("bias")]
optimizer = torch.optim.Adam(
    [{"params": decay, "weight_decay": 5e-4}, {"params": no_decay, "weight_decay": 0.0}], lr=0.01)
for epoch in range(1, 201):
    model.train()
    logits, _ = model(feats, edges)
    loss = F.cross_entropy(logits[train_idx], field[train_idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 40 == 0:
        model.eval()
        with torch.no_grad():
            pred = model(feats, edges)[0].argmax(1)
        test_acc = (pred[test_idx] == field[test_idx]).float().mean().item()
        print(f"epoch {epoch:3d}  loss {loss.item():.3f}  test acc {test_acc:.3f}")

with torch.no_grad():
    _, alpha = model(feats, edges)
survey_share = alpha[edges[0] >= N_PAPERS].sum().item() / alpha.sum().item()
print(f"attention on surveys {survey_share:.3f} (uniform would be {12 / 17:.3f})")
