"""Dense retriever with in-batch negatives over a batch that does not fit in memory at once (GradCache, Gao et al. 2021).

1. encode all queries and passages in chunks without a graph;
2. contrastive loss on the stored embeddings, gradient with respect to these embeddings;
3. encode chunk by chunk again with a graph and push the stored gradient through.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(14)

VOCAB, TOPICS, WORDS, DIM = 120, 40, 8, 32
BATCH, CHUNK = 96, 16

topic_words = torch.stack([torch.randperm(VOCAB)[:10] for _ in range(TOPICS)])


def documents(topic):
    own = topic_words[topic[:, None], torch.randint(10, (len(topic), WORDS))]
    noise = torch.rand(len(topic), WORDS) < 0.3
    return torch.where(noise, torch.randint(VOCAB, own.shape), own)


def paired_batch(n):
    topic = torch.randint(TOPICS, (n,))
    return documents(topic), documents(topic), topic


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, DIM))

    def forward(self, words):
        return F.normalize(self.layers(self.embed(words).mean(dim=1)), dim=-1)


class Retriever(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = Encoder()
        self.passage = Encoder()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def loss(self, q, p, topic):
        """Every passage on the query's topic counts as a positive."""
        log_probs = F.log_softmax(self.log_scale.exp() * q @ p.T, dim=-1)
        same = (topic[:, None] == topic[None, :]).float()
        return -(log_probs * same).sum(dim=-1).div(same.sum(dim=-1)).mean()


def encode_without_graph(encoder, words):
    with torch.no_grad():
        return torch.cat([encoder(part) for part in words.split(CHUNK)])


def push_through(encoder, words, gradient):
    for part, part_gradient in zip(words.split(CHUNK), gradient.split(CHUNK)):
        surrogate = (encoder(part) * part_gradient).sum()
        surrogate.backward()


def cached_backward(model, queries, passages, topic):
    q = encode_without_graph(model.query, queries).requires_grad_()
    p = encode_without_graph(model.passage, passages).requires_grad_()
    loss = model.loss(q, p, topic)
    loss.backward()
    push_through(model.query, queries, q.grad)
    push_through(model.passage, passages, p.grad)
    return loss.item()


def retrieval_accuracy(model, n=400):
    queries, _, topic = paired_batch(n)
    shelf_topic = torch.arange(TOPICS).repeat(5)
    shelf = documents(shelf_topic)
    scores = encode_without_graph(model.query, queries) @ encode_without_graph(model.passage, shelf).T
    return (shelf_topic[scores.argmax(dim=-1)] == topic).float().mean().item()


model = Retriever()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
print(f"before: accuracy {retrieval_accuracy(model):.3f}")

for step in range(120):
    batch = paired_batch(BATCH)
    optimizer.zero_grad()
    loss = cached_backward(model, *batch)
    optimizer.step()
    with torch.no_grad():
        model.log_scale.clamp_(max=4.0)
    if (step + 1) % 40 == 0:
        print(f"step {step + 1:3d}  loss {loss:.3f}  scale {model.log_scale.exp().item():.2f}")

print(f"after: accuracy {retrieval_accuracy(model):.3f}")
