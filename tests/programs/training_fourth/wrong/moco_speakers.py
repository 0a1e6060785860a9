"""Momentum contrast for speaker embeddings, judged by retrieval among unseen speakers."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(1)
torch.set_num_threads(1)
BANDS, TRAITS, PHONES = 32, 6, 8
voice_basis = torch.randn(TRAITS, BANDS)
phone_basis = torch.randn(PHONES, BANDS)


def utterances(traits):
    """One utterance for each speaker: the spectrum holds what is said and, weaker, who says it."""
    content = 1.8 * torch.randn(len(traits), PHONES) @ phone_basis
    spectrum = 1.5 * traits @ voice_basis + content
    return torch.tanh(0.3 * spectrum) + 0.05 * torch.randn(len(traits), BANDS)


class MoCo(nn.Module):
    def __init__(self, dim=16, queue=512, momentum=0.95, temperature=0.2):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(BANDS, 64), nn.ReLU(), nn.Linear(64, dim))
        self.key = copy.deepcopy(self.query)
        for p in self.key.parameters():
            p.requires_grad = False
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=1))
        self.pointer = 0

    @torch.no_grad()
    def update_key(self):
        for p_key, p_query in zip(self.key.parameters(), self.query.parameters()):
            p_key = self.momentum * p_key + (1 - self.momentum) * p_query

    @torch.no_grad()
    def enqueue(self, keys):
        n = len(keys)
        self.queue[self.pointer:self.pointer + n] = keys
        self.pointer = (self.pointer + n) % len(self.queue)

    def forward(self, view_a, view_b):
        q = F.normalize(self.query(view_a), dim=1)
        with torch.no_grad():
            self.update_key()
            k = F.normalize(self.key(view_b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], 1) / self.temperature
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


@torch.no_grad()
def retrieval(encoder, speakers=50, rounds=20):
    hits = 0.0
    for _ in range(rounds):
        traits = torch.randn(speakers, TRAITS)
        a = F.normalize(encoder(utterances(traits)), dim=1)
        b = F.normalize(encoder(utterances(traits)), dim=1)
        hits += ((a @ b.T).argmax(1) == torch.arange(speakers)).float().mean().item()
    return hits / rounds


model = MoCo()
train_traits = torch.randn(2048, TRAITS)
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
start = retrieval(model.query)
for epoch in range(24):
    total = 0.0
    for idx in torch.randperm(len(train_traits)).split(128):
        loss = model(utterances(train_traits[idx]), utterances(train_traits[idx]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 6 == 5:
        print(f"epoch {epoch:2d} loss {total / 16:.3f}")
final = retrieval(model.query)
print(f"retrieval accuracy {start:.3f} -> {final:.3f}")
