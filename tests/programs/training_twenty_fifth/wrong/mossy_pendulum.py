"""Character-level GRU language model trained with an exponential moving average of the weights."""
import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class EMA:
    """Keeps an averaged copy of the weights; `average_parameters` evaluates with it."""

    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.num_updates = 0
        self.shadow = [p.detach().clone() for p in model.parameters()]
        self.collected = []

    @torch.no_grad()
    def update(self):
        self.num_updates += 1
        decay = min(self.decay, (1 + self.num_updates) / (10 + self.num_updates))
        for s, p in zip(self.shadow, self.model.parameters()):
            s.lerp_(p, 1 - decay)

    def store(self):
        self.collected = [p.data for p in self.model.parameters()]

    def copy_to(self):
        for s, p in zip(self.shadow, self.model.parameters()):
            p.data.copy_(s)

    def restore(self):
        for c, p in zip(self.collected, self.model.parameters()):
            p.data.copy_(c)
        self.collected = []

    def __enter__(self):
        self.store()
        self.copy_to()

    def __exit__(self, *exc):
        self.restore()


class CharModel(nn.Module):
    def __init__(self, vocab, dim=24, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, ids):
        return self.out(self.rnn(self.embed(ids))[0])


def make_corpus(length, vocab, seed):
    """Second-order Markov text: the next symbol depends on the previous two."""
    rng = np.random.default_rng(99)
    table = rng.dirichlet(np.full(vocab, 0.12), size=(vocab, vocab)).cumsum(-1)
    u = np.random.default_rng(seed).random(length)
    text = [0, 1]
    for i in range(length - 2):
        text.append(min(int(np.searchsorted(table[text[-2], text[-1]], u[i])), vocab - 1))
    return torch.tensor(text)


def windows(text, n, size, gen):
    start = torch.randint(0, len(text) - size - 1, (n,), generator=gen)
    chunk = text[start[:, None] + torch.arange(size + 1)]
    return chunk[:, :-1], chunk[:, 1:]


@torch.no_grad()
def evaluate(model, text, size):
    model.eval()
    usable = (len(text) - 1) // size * size
    x, y = text[:usable].view(-1, size), text[1 : usable + 1].view(-1, size)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--eval-every", type=int, default=20)
    ap.add_argument("--size", type=int, default=20)
    args = ap.parse_args([])
    torch.manual_seed(3)
    gen = torch.Generator().manual_seed(4)
    train, valid = make_corpus(20000, 12, seed=1), make_corpus(4000, 12, seed=2)
    model = CharModel(12)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    ema = EMA(model, 0.99)
    for step in range(1, args.steps + 1):
        model.train()
        x, y = windows(train, 16, args.size, gen)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        ema.update()
        if step % args.eval_every == 0:
            with ema:
                val = evaluate(model, valid, args.size)
            if step % 80 == 0:
                print(f"step {step} train {loss.item():.4f} val (ema) {val:.4f}")


if __name__ == "__main__":
    main()
