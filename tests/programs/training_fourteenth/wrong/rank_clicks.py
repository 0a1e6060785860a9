"""Position-based click model for a result page: click = examined(rank) * attractive(query, document).

Sessions have between 4 and 10 results; shorter ones are padded.
"""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 31
QUERIES, DOCS, RANKS, FEATS = 40, 300, 10, 8
SESSIONS, BATCH, EPOCHS = 8000, 256, 10
EXAMINED = np.array([0.95, 0.72, 0.55, 0.42, 0.33, 0.26, 0.21, 0.17, 0.14, 0.12])


def simulate(rng):
    """Sessions with a noisy production ranker; document id 0 is the padding."""
    doc_feats = rng.normal(size=(DOCS + 1, FEATS))
    query_feats = rng.normal(size=(QUERIES, FEATS))
    attract = 1 / (1 + np.exp(-(query_feats @ doc_feats.T) * 0.8 - 0.3))
    query = rng.integers(0, QUERIES, size=SESSIONS)
    docs = np.zeros((SESSIONS, RANKS), dtype=np.int64)
    clicks = np.zeros((SESSIONS, RANKS), dtype=np.float32)
    for s in range(SESSIONS):
        length = rng.integers(4, RANKS + 1)
        shown = rng.choice(DOCS, size=length, replace=False) + 1
        shown = shown[np.argsort(-attract[query[s], shown] + 0.3 * rng.normal(size=length))]
        docs[s, :length] = shown
        clicks[s, :length] = rng.random(length) < EXAMINED[:length] * attract[query[s], shown]
    to = torch.from_numpy
    return to(query), to(docs), to(clicks), to(doc_feats).float(), to(query_feats).float(), to(attract).float()


class ClickModel(nn.Module):
    def __init__(self, doc_feats, query_feats, dim=16):
        super().__init__()
        self.register_buffer("doc_feats", doc_feats)
        self.register_buffer("query_feats", query_feats)
        self.rank_logit = nn.Embedding(RANKS, 1, padding_idx=0)
        self.doc_bias = nn.Embedding(DOCS + 1, 1, padding_idx=0)
        self.doc_tower = nn.Sequential(nn.Linear(FEATS, 32), nn.ReLU(), nn.Linear(32, dim))
        self.query_tower = nn.Sequential(nn.Linear(FEATS, 32), nn.ReLU(), nn.Linear(32, dim))
        nn.init.zeros_(self.rank_logit.weight)
        nn.init.zeros_(self.doc_bias.weight)

    def attraction(self, query, docs):
        q = self.query_tower(self.query_feats[query])
        d = self.doc_tower(self.doc_feats[docs])
        return torch.sigmoid((q.unsqueeze(1) * d).sum(-1) + self.doc_bias(docs).squeeze(-1))

    def examination(self):
        return torch.sigmoid(self.rank_logit(torch.arange(RANKS)).squeeze(-1))

    def forward(self, query, docs):
        return self.examination() * self.attraction(query, docs)


def click_loss(model, query, docs, clicks):
    mask = docs != 0
    p = model(query, docs).clamp(1e-5, 1 - 1e-5)
    return F.binary_cross_entropy(p[mask], clicks[mask])


def main():
    torch.manual_seed(SEED)
    query, docs, clicks, doc_feats, query_feats, attract = simulate(np.random.default_rng(SEED))
    n_train = int(0.85 * SESSIONS)
    model = ClickModel(doc_feats, query_feats)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(EPOCHS):
        model.train()
        for idx in torch.randperm(n_train).split(BATCH):
            loss = click_loss(model, query[idx], docs[idx], clicks[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d}  last loss {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        held_out = click_loss(model, query[n_train:], docs[n_train:], clicks[n_train:]).item()
        examined = model.examination()
        everything = torch.arange(1, DOCS + 1).expand(QUERIES, DOCS)
        error = (model.attraction(torch.arange(QUERIES), everything) - attract[:, 1:]).abs().mean().item()
    print(f"held-out log loss {held_out:.4f}  mean error of the attractiveness {error:.4f}")
    print("examination by rank", [round(v, 2) for v in examined.tolist()])
    return model, held_out, error


if __name__ == "__main__":
    model, held_out, error = main()
