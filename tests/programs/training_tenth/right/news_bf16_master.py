"""Headline classifier kept in bfloat16, with float32 master weights, loss scaling and gradient accumulation by hand."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

SEED = 21
VOCAB = 200
TOPICS = 5
LENGTH = 12
MICRO = 32
ACCUMULATE = 4
EPOCHS = 8
LOSS_SCALE = 128.0


def make_headlines(n=2048):
    rng = np.random.default_rng(SEED)
    topic = rng.integers(0, TOPICS, n)
    words = rng.integers(1 + TOPICS * 15, VOCAB, (n, LENGTH))
    keyword = rng.random((n, LENGTH)) < 0.3
    words[keyword] = (1 + topic[:, None] * 15 + rng.integers(0, 15, (n, LENGTH)))[keyword]
    length = rng.integers(5, LENGTH + 1, n)
    words[np.arange(LENGTH)[None] >= length[:, None]] = 0
    return torch.from_numpy(words), torch.from_numpy(topic)


class HeadlineNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim, padding_idx=0)
        self.query = nn.Parameter(torch.randn(dim) * 0.1)
        self.hidden = nn.Linear(dim, 64)
        self.out = nn.Linear(64, TOPICS)

    def forward(self, words):
        x = self.embed(words)
        score = (x @ self.query).masked_fill(words == 0, float("-inf"))
        pooled = (score.softmax(1)[..., None] * x).sum(1)
        return self.out(F.gelu(self.hidden(pooled)))


class MasterWeights:
    """Float32 copies of the low-precision parameters: the optimizer sees the copies only."""

    def __init__(self, model):
        self.low = list(model.parameters())
        self.high = [p.detach().clone().float().requires_grad_() for p in self.low]

    def collect(self, weight):
        for low, high in zip(self.low, self.high):
            grad = low.grad.float() * (weight / LOSS_SCALE)
            high.grad = grad if high.grad is None else high.grad + grad
            low.grad = None

    @torch.no_grad()
    def publish(self):
        for low, high in zip(self.low, self.high):
            low.copy_(high)


@torch.no_grad()
def accuracy(model, words, topic):
    return (model(words).argmax(1) == topic).float().mean().item()


def main():
    torch.manual_seed(SEED)
    words, topic = make_headlines()
    train, test = slice(0, 1664), slice(1664, None)
    model = HeadlineNet().to(torch.bfloat16)
    master = MasterWeights(model)
    optimizer = torch.optim.AdamW(master.high, lr=5e-3, weight_decay=0.01)
    before, skipped, seen = accuracy(model, words[test], topic[test]), 0, []
    for epoch in range(EPOCHS):
        for window in torch.randperm(1664).split(MICRO * ACCUMULATE):
            for index in window.split(MICRO):
                logits = model(words[train][index])
                loss = F.cross_entropy(logits.float(), topic[train][index])
                (loss * LOSS_SCALE).backward()
                master.collect(len(index) / len(window))
                seen.append(loss.item())
            norm = nn.utils.clip_grad_norm_(master.high, 1.0)
            if torch.isfinite(norm):
                optimizer.step()
                master.publish()
            else:
                skipped += 1
            optimizer.zero_grad()
    gap = max((l.float() - h).abs().max().item() for l, h in zip(master.low, master.high))
    print(f"loss {np.mean(seen[:20]):.3f} -> {np.mean(seen[-20:]):.3f}, skipped {skipped}, rounding gap {gap:.1e}")
    print(f"test accuracy {before:.3f} -> {accuracy(model, words[test], topic[test]):.3f}")
    return model, master


if __name__ == "__main__":
    model, master = main()
