"""Small character model on lines of very different length, large batches by accumulation."""
import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = -100


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--lines", type=int, default=330)
    ap.add_argument("--micro-batch", type=int, default=8)
    ap.add_argument("--accumulate", type=int, default=4)
    ap.add_argument("--lr", type=float, default=1e-2)
    ap.add_argument("--clip", type=float, default=1.0)
    ap.add_argument("--seed", type=int, default=13)
    return ap.parse_args([])


def make_lines(n, vocab, gen):
    """Lines from a random second-order chain, length between 4 and 40."""
    table = torch.softmax(2.5 * torch.randn(vocab, vocab, vocab, generator=gen), -1)
    lines = []
    for _ in range(n):
        length = int(torch.randint(4, 41, (1,), generator=gen))
        s = torch.randint(vocab, (2,), generator=gen).tolist()
        while len(s) < length:
            s.append(int(torch.multinomial(table[s[-2], s[-1]], 1, generator=gen)))
        lines.append(torch.tensor(s))
    return lines


def collate(lines):
    width = max(len(l) for l in lines) - 1
    x = torch.zeros(len(lines), width, dtype=torch.long)
    y = torch.full((len(lines), width), PAD)
    for row, l in enumerate(lines):
        x[row, :len(l) - 1] = l[:-1]
        y[row, :len(l) - 1] = l[1:]
    return x, y


class CharModel(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, x):
        return self.out(self.rnn(self.emb(x))[0])


def token_loss(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=PAD, reduction="sum")


class Trainer:
    def __init__(self, model, args):
        self.model, self.args = model, args
        self.opt = torch.optim.Adam(model.parameters(), lr=args.lr)
        self.tokens, self.updates = 0, 0

    def backward(self, x, y):
        loss = token_loss(self.model, x, y)
        loss.backward()
        self.tokens += int((y != PAD).sum())
        return loss.item()

    def update(self):
        for p in self.model.parameters():
            p.grad.div_(self.tokens)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.args.clip)
        self.opt.step()
        self.opt.zero_grad()
        self.tokens, self.updates = 0, self.updates + 1

    def epoch(self, lines):
        order = torch.randperm(len(lines)).split(self.args.micro_batch)
        loss_sum, seen = 0.0, 0
        for step, idx in enumerate(order, 1):
            loss_sum += self.backward(*collate([lines[i] for i in idx]))
            seen += sum(len(lines[i]) - 1 for i in idx)
            if step % self.args.accumulate == 0 or step == len(order):
                self.update()
        return loss_sum / seen


@torch.no_grad()
def perplexity(model, lines):
    x, y = collate(lines)
    return math.exp(token_loss(model, x, y).item() / int((y != PAD).sum()))


def main():
    args = parse()
    torch.manual_seed(args.seed)
    lines = make_lines(args.lines + 80, 10, torch.Generator().manual_seed(args.seed))
    train, valid, trainer = lines[:args.lines], lines[args.lines:], Trainer(CharModel(10), args)
    for e in range(5):
        nll = trainer.epoch(train)
        print(f"epoch {e + 1} train nll {nll:.3f} valid ppl {perplexity(trainer.model, valid):.2f} updates {trainer.updates}")
    return trainer, train


if __name__ == "__main__":
    trainer, train = main()
