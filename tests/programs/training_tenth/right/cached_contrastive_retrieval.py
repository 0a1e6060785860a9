import torch
from torch import nn
import torch.nn.functional as F

N_DOCS, CONTENT, DIM, BATCH, CHUNK = 800, 48, 24, 200, 40


def make_corpus(generator):
    """Documents with fixed content vectors; a query is a noisy, linearly mixed copy of its document."""
    latent = torch.randn(N_DOCS, 12, generator=generator)
    to_doc = torch.randn(12, CONTENT, generator=generator) / 12 ** 0.5
    to_query = torch.randn(12, CONTENT, generator=generator) / 12 ** 0.5
    docs = latent @ to_doc + 0.3 * torch.randn(N_DOCS, CONTENT, generator=generator)
    train = latent @ to_query + 0.3 * torch.randn(N_DOCS, CONTENT, generator=generator)
    test = latent @ to_query + 0.3 * torch.randn(N_DOCS, CONTENT, generator=generator)
    popularity = torch.rand(N_DOCS, generator=generator) ** 2 + 0.05
    return docs, train, test, popularity / popularity.sum()


class DocumentTower(nn.Module):
    """Looks up frozen content vectors (never trained) and encodes them; dropout is active in training."""

    def __init__(self, content):
        super().__init__()
        self.content = nn.Embedding.from_pretrained(content, freeze=True)
        self.net = nn.Sequential(nn.Linear(CONTENT, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, DIM))

    def forward(self, ids):
        return F.normalize(self.net(self.content(ids)), dim=-1)


class QueryTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(CONTENT, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, DIM))

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


def encode_without_graph(tower, inputs):
    """First pass: embeddings only; the generator's state is kept to repeat the dropout masks later."""
    outputs, states = [], []
    with torch.no_grad():
        for piece in inputs.split(CHUNK):
            states.append(torch.get_rng_state())
            outputs.append(tower(piece))
    return torch.cat(outputs).requires_grad_(), states


def replay_with_graph(tower, inputs, states, cached_grad):
    """Second pass: the same forward in pieces, with the cached gradient fed in from above."""
    after = torch.get_rng_state()
    for piece, state, grad in zip(inputs.split(CHUNK), states, cached_grad.split(CHUNK)):
        torch.set_rng_state(state)
        tower(piece).backward(grad)
    torch.set_rng_state(after)


generator = torch.Generator().manual_seed(5)
torch.manual_seed(5)
docs, train_queries, test_queries, popularity = make_corpus(generator)
document_tower, query_tower = DocumentTower(docs), QueryTower()
log_scale = nn.Parameter(torch.tensor(2.5))
towers = [p for m in (document_tower, query_tower) for p in m.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW([
    {"params": towers, "lr": 3e-3},
    {"params": [log_scale], "lr": 1e-2, "weight_decay": 0.0},
])
for step in range(400):
    ids = torch.multinomial(popularity, BATCH, generator=generator)
    queries = train_queries[ids] + 0.2 * torch.randn(BATCH, CONTENT, generator=generator)
    q, q_states = encode_without_graph(query_tower, queries)
    d, d_states = encode_without_graph(document_tower, ids)
    logits = log_scale.exp() * q @ d.T - popularity[ids].log().detach()
    logits = logits.masked_fill((ids[:, None] == ids) & ~torch.eye(BATCH, dtype=torch.bool), -1e9)
    loss = F.cross_entropy(logits, torch.arange(BATCH))
    optimizer.zero_grad()
    loss.backward()
    replay_with_graph(query_tower, queries, q_states, q.grad)
    replay_with_graph(document_tower, ids, d_states, d.grad)
    optimizer.step()
    with torch.no_grad():
        log_scale.clamp_(0.0, 4.0)
    if step % 150 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

document_tower.eval(), query_tower.eval()
with torch.no_grad():
    index = document_tower(torch.arange(N_DOCS))
    top = (query_tower(test_queries) @ index.T).topk(10, dim=1).indices
    recall = (top == torch.arange(N_DOCS)[:, None]).any(1).float().mean().item()
print(f"recall@10 {recall:.3f}")
