"""A small character model whose feed-forward block is a mixture of experts."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
rng = np.random.default_rng(3)
VOCAB, DIM, CONTEXT, EXPERTS = 20, 32, 16, 6


def make_corpus(n_docs, length=CONTEXT + 1, dialects=6):
    """Every document follows the bigram table of its dialect; its first character names the dialect."""
    tables = rng.dirichlet(np.full(VOCAB - dialects, 0.12), size=(dialects, VOCAB))
    docs = np.zeros((n_docs, length), dtype=np.int64)
    for i in range(n_docs):
        dialect = rng.integers(dialects)
        docs[i, 0] = VOCAB - dialects + dialect
        docs[i, 1] = rng.integers(VOCAB - dialects)
        for t in range(2, length):
            docs[i, t] = rng.choice(VOCAB - dialects, p=tables[dialect, docs[i, t - 1]])
    return torch.from_numpy(docs)


class Expert(nn.Sequential):
    def __init__(self, dim, hidden):
        super().__init__(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))


class SparseFFN(nn.Module):
    def __init__(self, dim, n_experts, top_k, hidden=24):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(dim, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(dim, hidden) for _ in range(n_experts))
        self.register_buffer("load", torch.zeros(n_experts))

    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        scores = self.router(tokens)
        top_scores, chosen = scores.topk(self.top_k, dim=-1)
        weights = F.softmax(top_scores, dim=-1)
        out = torch.zeros_like(tokens)
        for e, expert in enumerate(self.experts):
            row, slot = (chosen == e).nonzero(as_tuple=True)
            if len(row):
                out = out.index_add(0, row, expert(tokens[row]) * weights[row, slot, None])
            self.load[e] += len(row)
        return out.view_as(x)


class CharModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, DIM))
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, 2, batch_first=True)
        self.ffn = SparseFFN(DIM, EXPERTS, top_k=1)
        self.out = nn.Linear(DIM, VOCAB)
        self.register_buffer("causal", torch.ones(CONTEXT, CONTEXT).triu(1).bool(), persistent=False)

    def forward(self, ids):
        x = self.embed(ids) + self.position[: ids.shape[1]]
        h = self.norm1(x)
        x = x + self.attention(h, h, h, attn_mask=self.causal, need_weights=False)[0]
        x = x + self.ffn(self.norm2(x))
        return self.out(x)


def next_char_loss(model, docs):
    logits = model(docs[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), docs[:, 1:].flatten())


corpus = make_corpus(1100)
train_docs, held_out = corpus[:900], corpus[900:]
model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
steps = 240
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

for step in range(steps):
    batch = train_docs[torch.randint(len(train_docs), (48,))]
    loss = next_char_loss(model, batch)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if (step + 1) % 60 == 0:
        print(f"step {step + 1}: train loss {loss.item():.3f}")

model.eval()
model.ffn.load.zero_()
with torch.no_grad():
    print(f"held-out loss {next_char_loss(model, held_out).item():.3f}")
share = model.ffn.load / model.ffn.load.sum()
print("share of tokens per expert:", [round(s, 2) for s in share.tolist()])
