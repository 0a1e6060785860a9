"""Dual-encoder passage search trained with a large in-batch softmax whose gradients are cached chunk by chunk."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
VOCAB, LENGTH, TOPICS = 120, 12, 60


def make_pairs(count):
    topic = torch.randint(0, TOPICS, (count,))
    table = torch.randint(0, VOCAB, (TOPICS, 2, 8), generator=torch.Generator().manual_seed(5))

    def draw(side):
        words = table[topic, side].gather(1, torch.randint(0, 8, (count, LENGTH)))
        noise = torch.randint(0, VOCAB, (count, LENGTH))
        return torch.where(torch.rand(count, LENGTH) < 0.2, noise, words)

    return draw(0), draw(1), topic


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, width)
        self.mix = nn.Linear(width, 1, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, ids):
        h = self.emb(ids)
        weight = torch.softmax(self.mix(h), 1)
        return F.normalize(self.out(torch.tanh((h * weight).sum(1))), dim=-1)


class DualEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = Encoder()
        self.passage = Encoder()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, q, p, topic):
        logits = q @ p.t() * self.log_scale.exp()
        same = topic[:, None] == topic[None, :]
        twin = same & ~torch.eye(len(topic), dtype=torch.bool)
        logits = logits.masked_fill(twin, -1e4)
        target = torch.arange(len(topic))
        return 0.5 * (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target))


def cached_backward(model, queries, passages, topic, chunk):
    with torch.no_grad():
        q = torch.cat([model.query(c) for c in queries.split(chunk)])
        p = torch.cat([model.passage(c) for c in passages.split(chunk)])
    q, p = q.detach().requires_grad_(), p.detach().requires_grad_()
    loss = model.loss(q, p, topic)
    loss.backward()
    for encoder, ids, leaf in ((model.query, queries, q), (model.passage, passages, p)):
        for piece, grad in zip(ids.split(chunk), leaf.grad.split(chunk)):
            encoder(piece).backward(gradient=grad)
    return loss.detach()


def train(model, data, epochs=12, batch=128, chunk=32):
    decay = [w for n, w in model.named_parameters() if w.dim() > 1 and "emb" not in n]
    rest = [w for n, w in model.named_parameters() if w.dim() <= 1 or "emb" in n]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=5e-3)
    queries, passages, topic = data
    for epoch in range(epochs):
        for idx in torch.randperm(len(topic)).split(batch):
            opt.zero_grad()
            last = cached_backward(model, queries[idx], passages[idx], topic[idx], chunk)
            opt.step()
            with torch.no_grad():
                model.log_scale.clamp_(max=4.0)
    return last


@torch.no_grad()
def recall(model, data):
    queries, passages, topic = data
    best = (model.query(queries) @ model.passage(passages).t()).argmax(1)
    return (topic[best] == topic).float().mean().item()


model = DualEncoder()
test = make_pairs(256)
before = recall(model, test)
final = train(model, make_pairs(2048))
print(f"last loss {final.item():.3f}  recall@1 before {before:.3f} after {recall(model, test):.3f}")
