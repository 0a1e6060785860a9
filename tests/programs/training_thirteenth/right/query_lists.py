"""LambdaRank for search results: lists of unequal length, a shared scorer, NDCG@10 on held-out queries.

The lambdas are the derivatives of the pairwise logistic costs by the scores, weighted by the change of NDCG that
swapping the two documents would bring. No closed form of a loss has these derivatives, so they are computed from
the scores' values and handed to the backward pass as they are.
"""
import numpy as np
import torch
import torch.nn as nn

SEED = 4
N_TRAIN, N_TEST, N_FEATURES = 500, 300, 20
MIN_DOCS, MAX_DOCS = 5, 30
EPOCHS, QUERIES_PER_STEP, CHUNK = 8, 32, 16

torch.manual_seed(SEED)
rng = np.random.default_rng(SEED)
w_good, w_bad = rng.standard_normal((2, N_FEATURES))


def make_queries(n):
    x = np.zeros((n, MAX_DOCS, N_FEATURES))
    grade = np.zeros((n, MAX_DOCS))
    valid = np.zeros((n, MAX_DOCS), dtype=bool)
    for q in range(n):
        docs = int(rng.integers(MIN_DOCS, MAX_DOCS + 1))
        feats = rng.standard_normal((docs, N_FEATURES)) + rng.normal(0, 1.0, N_FEATURES)
        quality = feats @ w_good / 3 + np.abs(feats @ w_bad) / 3 + 0.4 * rng.standard_normal(docs)
        order = quality.argsort().argsort() / docs
        x[q, :docs], valid[q, :docs] = feats, True
        grade[q, :docs] = np.digitize(order, [0.6, 0.8, 0.92])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(grade, dtype=torch.float32), torch.tensor(valid)


class Scorer(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(N_FEATURES, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )

    def forward(self, x):
        return self.net(x).squeeze(-1)


def ideal_dcg(grade, k=None):
    best = grade.sort(dim=1, descending=True).values[:, :k]
    discount = 1 / torch.log2(torch.arange(best.shape[1]) + 2.0)
    return ((2 ** best - 1) * discount).sum(dim=1)


@torch.no_grad()
def lambdas(score, grade, valid):
    """d cost / d score, (queries, docs); zero for the padding."""
    rank = score.masked_fill(~valid, -torch.inf).argsort(dim=1, descending=True).argsort(dim=1)
    gain = (2 ** grade - 1) / ideal_dcg(grade).clamp(min=1e-6)[:, None]
    discount = 1 / torch.log2(rank + 2.0)
    swap = ((gain[:, :, None] - gain[:, None, :]) * (discount[:, :, None] - discount[:, None, :])).abs()
    better = (grade[:, :, None] > grade[:, None, :]) & valid[:, :, None] & valid[:, None, :]
    push = better * swap * torch.sigmoid(score[:, None, :] - score[:, :, None])
    return push.sum(dim=1) - push.sum(dim=2)


@torch.no_grad()
def ndcg(model, x, grade, valid, k=10):
    score = model(x).masked_fill(~valid, -torch.inf)
    picked = grade.gather(1, score.topk(k, dim=1).indices)
    discount = 1 / torch.log2(torch.arange(k) + 2.0)
    dcg = ((2 ** picked - 1) * discount).sum(dim=1)
    return (dcg / ideal_dcg(grade, k).clamp(min=1e-6)).mean().item()


model = Scorer()
x, grade, valid = make_queries(N_TRAIN)
test = make_queries(N_TEST)
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
print(f"before  NDCG@10 {ndcg(model, *test):.4f}")
for epoch in range(EPOCHS):
    norm = []
    for rows in torch.randperm(N_TRAIN).split(QUERIES_PER_STEP):
        opt.zero_grad()
        # long lists cost memory in the (docs x docs) tables: a step's queries go through in chunks
        for part in rows.split(CHUNK):
            score = model(x[part])
            score.backward(gradient=lambdas(score, grade[part], valid[part]) / len(rows))
        norm.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0).item())
        opt.step()
    print(f"epoch {epoch}  mean gradient norm {np.mean(norm):.3f}  NDCG@10 {ndcg(model, *test):.4f}")
