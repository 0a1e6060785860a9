"""Question-answer retrieval with a large contrastive batch in little memory.

The loss couples all pairs of the batch, so the batch cannot simply be split. Embeddings are first
computed without a graph, the loss is differentiated with respect to them, and the encoders are then
run again chunk by chunk against the stored embedding gradients.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

VOCAB, LENGTH, TOPICS, EMBED = 300, 12, 16, 32
BATCH, CHUNK = 256, 32

question_words = torch.randn(TOPICS, VOCAB)
answer_words = torch.randn(TOPICS, VOCAB)


def make_pairs(n):
    topics = torch.randn(n, TOPICS)
    questions = torch.multinomial(F.softmax(topics @ question_words, -1), LENGTH, replacement=True)
    answers = torch.multinomial(F.softmax(topics @ answer_words, -1), LENGTH, replacement=True)
    return questions, answers


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 48)
        self.mix = nn.Sequential(nn.Linear(48, 96), nn.GELU(), nn.Linear(96, EMBED))

    def forward(self, tokens):
        return F.normalize(self.mix(self.embed(tokens).mean(1)), dim=-1)


class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, similarity):
        return similarity * self.log_scale.exp()


def info_nce(q, a, temperature):
    logits = temperature(q @ a.t())
    labels = torch.arange(len(q))
    return 0.5 * (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels))


def embed_all(encoder, tokens):
    with torch.no_grad():
        return torch.cat([encoder(part) for part in tokens.split(CHUNK)])


def replay(encoder, tokens, grad):
    for part, g in zip(tokens.split(CHUNK), grad.split(CHUNK)):
        surrogate = (encoder(part) * g).sum()
        surrogate.backward()


def large_batch_backward(q_encoder, a_encoder, temperature, questions, answers):
    q = embed_all(q_encoder, questions).requires_grad_()
    a = embed_all(a_encoder, answers).requires_grad_()
    loss = info_nce(q, a, temperature)
    loss.backward()
    replay(q_encoder, questions, q.grad)
    replay(a_encoder, answers, a.grad)
    return loss.item()


@torch.no_grad()
def mrr(q_encoder, a_encoder, questions, answers):
    similarity = q_encoder(questions) @ a_encoder(answers).t()
    own = similarity.diagonal()[:, None]
    return (1.0 / (similarity >= own).sum(1)).mean().item()


train_q, train_a = make_pairs(12000)
test_q, test_a = make_pairs(300)

q_encoder, a_encoder, temperature = Encoder(), Encoder(), Temperature()
optimizer = torch.optim.Adam(
    [
        {"params": [*q_encoder.parameters(), *a_encoder.parameters()], "lr": 3e-3},
        {"params": temperature.parameters(), "lr": 1e-2},
    ]
)

for step in range(121):
    idx = torch.randint(0, len(train_q), (BATCH,))
    optimizer.zero_grad()
    loss = large_batch_backward(q_encoder, a_encoder, temperature, train_q[idx], train_a[idx])
    optimizer.step()
    if step % 40 == 0:
        print(f"step {step:3d}  loss {loss:.3f}  MRR {mrr(q_encoder, a_encoder, test_q, test_a):.3f}")
print(f"scale {temperature.log_scale.exp().item():.2f}")
