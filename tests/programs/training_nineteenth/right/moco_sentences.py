"""Momentum contrast (He et al. 2020) for short documents, in one file, for the self-supervision reading group.

A document is a mix of two topics over a common vocabulary; its two views are bags of words from two random halves.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

TOPICS, VOCAB, WORDS, DIM = 12, 300, 40, 24


def write_documents(n, gen):
    topic_words = torch.softmax(1.6 * torch.randn(TOPICS, VOCAB, generator=torch.Generator().manual_seed(5)), dim=1)
    common = torch.softmax(1.5 * torch.randn(VOCAB, generator=torch.Generator().manual_seed(6)), dim=0)
    main_topic = torch.randint(0, TOPICS, (n,), generator=gen)
    side_topic = torch.randint(0, TOPICS, (n,), generator=gen)
    mix = 0.35 * topic_words[main_topic] + 0.15 * topic_words[side_topic] + 0.5 * common
    return torch.multinomial(mix, WORDS, replacement=True, generator=gen), main_topic


def bag(words):
    return torch.zeros(len(words), VOCAB).scatter_add(1, words, torch.ones(words.shape)).sqrt()


def two_views(words, gen):
    order = torch.rand(words.shape, generator=gen).argsort(dim=1)
    shuffled = words.gather(1, order)
    return bag(shuffled[:, :WORDS // 2]), bag(shuffled[:, WORDS // 2:])


def make_encoder():
    return nn.Sequential(nn.Linear(VOCAB, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, DIM))


class MoCo(nn.Module):
    def __init__(self, size=512, momentum=0.99, temperature=0.15):
        super().__init__()
        self.momentum, self.temperature = momentum, temperature
        self.query = make_encoder()
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(size, DIM), dim=1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.key.parameters(), self.query.parameters()):
            slow.lerp_(fast, 1.0 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        at = (self.cursor + torch.arange(keys.size(0))) % self.queue.size(0)
        self.queue[at] = keys
        self.cursor.add_(keys.size(0)).remainder_(self.queue.size(0))

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            k = F.normalize(self.key(b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        # the queue is overwritten below, before the caller's backward pass
        negative = q @ self.queue.clone().t()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
        self.enqueue(k)
        return loss


def neighbour_accuracy(encoder, bank, queries):
    """k-nearest-neighbour classification in feature space, as a probe without training."""
    with torch.no_grad():
        f_bank = F.normalize(encoder(bag(bank[0])), dim=1)
        f_query = F.normalize(encoder(bag(queries[0])), dim=1)
    votes = bank[1][(f_query @ f_bank.t()).topk(7, dim=1).indices]
    return (votes.mode(dim=1).values == queries[1]).float().mean().item()


def main():
    torch.manual_seed(41)
    gen = torch.Generator().manual_seed(42)
    words, _ = write_documents(2048, gen)
    bank, queries = write_documents(400, gen), write_documents(400, gen)

    moco = MoCo()
    optimizer = torch.optim.Adam(moco.query.parameters(), lr=1e-3, weight_decay=1e-5)
    print(f"before: knn accuracy {neighbour_accuracy(moco.query, bank, queries):.3f}")
    for epoch in range(20):
        total = 0.0
        for idx in torch.randperm(len(words), generator=gen).split(64):
            loss = moco(*two_views(words[idx], gen))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            moco.follow()
            total += loss.item() * len(idx)
        if epoch % 5 == 4:
            knn = neighbour_accuracy(moco.query, bank, queries)
            print(f"epoch {epoch + 1:2d}  loss {total / len(words):.3f}  knn accuracy {knn:.3f}")
    print(f"key encoder: knn accuracy {neighbour_accuracy(moco.key, bank, queries):.3f}")


if __name__ == "__main__":
    main()
