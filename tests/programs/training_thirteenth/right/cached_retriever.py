"""Dual-encoder retrieval with a large contrastive batch under a small memory budget.

The batch is embedded in chunks without a graph, the loss gives the gradient of every embedding, and a
second pass over the chunks carries these gradients into the encoders. The random state of each chunk is
put back for the second pass, so that both passes see the same dropout.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
VOCAB, DIM, TOPICS, PAD = 200, 48, 40, 0


class TextEncoder(nn.Module):
    def __init__(self, embed):
        super().__init__()
        self.embed = embed
        self.net = nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32))

    def forward(self, tokens):
        keep = (tokens != PAD).float().unsqueeze(-1)
        pooled = (self.embed(tokens) * keep).sum(1) / keep.sum(1).clamp(min=1)
        return F.normalize(self.net(pooled), dim=-1)


def make_pairs(n, gen):
    """A question and its passage are drawn from the same mixture of two topics."""
    topics = torch.randint(0, TOPICS, (n, 2), generator=gen)

    def write(length, noise):
        own = topics.gather(1, torch.randint(0, 2, (n, length), generator=gen)) * 4
        own = 1 + own + torch.randint(0, 4, (n, length), generator=gen)
        other = torch.randint(1, VOCAB, (n, length), generator=gen)
        words = torch.where(torch.rand(n, length, generator=gen) < noise, other, own)
        lengths = torch.randint(length // 2, length + 1, (n, 1), generator=gen)
        return words.masked_fill(torch.arange(length) >= lengths, PAD)

    return write(8, 0.2), write(20, 0.3)


def in_batch_loss(questions, passages, scale):
    logits = scale * questions @ passages.T
    target = torch.arange(len(logits))
    return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target))


def embed_without_graph(encoder, chunks):
    states, parts = [], []
    with torch.no_grad():
        for chunk in chunks:
            states.append(torch.get_rng_state())
            parts.append(encoder(chunk))
    return torch.cat(parts).requires_grad_(), states


def carry_gradients(encoder, chunks, states, gradient):
    for chunk, state, part in zip(chunks, states, gradient.split([len(c) for c in chunks])):
        torch.set_rng_state(state)
        encoder(chunk).backward(gradient=part)


def cached_step(q_encoder, p_encoder, log_scale, questions, passages, chunk_size):
    q_chunks, p_chunks = questions.split(chunk_size), passages.split(chunk_size)
    q, q_states = embed_without_graph(q_encoder, q_chunks)
    p, p_states = embed_without_graph(p_encoder, p_chunks)
    after = torch.get_rng_state()
    loss = in_batch_loss(q, p, log_scale.exp())
    loss.backward()
    carry_gradients(q_encoder, q_chunks, q_states, q.grad)
    carry_gradients(p_encoder, p_chunks, p_states, p.grad)
    torch.set_rng_state(after)
    return loss.item()


@torch.no_grad()
def recall_at(k, q_encoder, p_encoder, questions, passages):
    q_encoder.eval(), p_encoder.eval()
    top = (q_encoder(questions) @ p_encoder(passages).T).topk(k, dim=1).indices
    q_encoder.train(), p_encoder.train()
    return (top == torch.arange(len(top))[:, None]).any(1).float().mean().item()


gen = torch.Generator().manual_seed(1)
train_q, train_p = make_pairs(4000, gen)
test_q, test_p = make_pairs(500, gen)

embed = nn.Embedding(VOCAB, DIM, padding_idx=PAD)
q_encoder, p_encoder = TextEncoder(embed), TextEncoder(embed)
log_scale = nn.Parameter(torch.tensor(2.3))
weights = {id(p): p for m in (q_encoder, p_encoder) for p in m.parameters()}
optimizer = torch.optim.AdamW([
    {"params": list(weights.values()), "weight_decay": 1e-3},
    {"params": [log_scale], "weight_decay": 0.0},
], lr=3e-3)

print(f"before: recall@5 {recall_at(5, q_encoder, p_encoder, test_q, test_p):.3f}")
for step in range(140):
    pick = torch.randint(len(train_q), (256,))
    optimizer.zero_grad()
    loss = cached_step(q_encoder, p_encoder, log_scale, train_q[pick], train_p[pick], chunk_size=64)
    optimizer.step()
    if (step + 1) % 35 == 0:
        print(f"step {step + 1}: loss {loss:.3f} scale {log_scale.exp().item():.1f}")
print(f"after: recall@5 {recall_at(5, q_encoder, p_encoder, test_q, test_p):.3f}")
