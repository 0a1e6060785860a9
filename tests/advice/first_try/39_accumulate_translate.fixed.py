import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyTagger(nn.Module):
    def __init__(self, vocab=30, dim=16, tags=6):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, 24, batch_first=True)
        self.head = nn.Linear(24, tags)

    def forward(self, ids):
        out, _ = self.rnn(self.embed(ids))
        return self.head(out)


class LossMeter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def push(self, value):
        self.sum += value
        self.count += 1

    def mean(self):
        return self.sum / max(self.count, 1)

    def reset(self):
        self.sum = 0.0
        self.count = 0


class AccumulatingTrainer:
    def __init__(self, model, accum=4, max_norm=1.0, lr=3e-2):
        self.model = model
        self.accum = accum
        self.max_norm = max_norm
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.window = LossMeter()
        self.log = LossMeter()
        self.updates = 0

    def loss(self, ids, tags):
        logits = self.model(ids)
        return F.cross_entropy(logits.flatten(0, 1), tags.flatten())

    def flush(self):
        self.window.mean().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        self.window.reset()
        self.updates += 1

    def fit(self, data):
        for i, (ids, tags) in enumerate(data):
            loss = self.loss(ids, tags)
            self.window.push(loss)
            self.log.push(loss.item())
            if (i + 1) % self.accum == 0:
                self.flush()
            if (i + 1) % 32 == 0:
                print(f"micro {i + 1} updates {self.updates} loss {self.log.mean():.4f}")
                self.log.reset()


def corpus(n, batch=6, length=9):
    gen = torch.Generator().manual_seed(33)
    for _ in range(n):
        ids = torch.randint(0, 30, (batch, length), generator=gen)
        prev = torch.cat([ids[:, :1], ids[:, :-1]], 1)
        yield ids, (ids // 5 + (prev > 15).long()) % 6


def main():
    torch.manual_seed(15)
    AccumulatingTrainer(TinyTagger()).fit(corpus(192))


if __name__ == "__main__":
    main()
