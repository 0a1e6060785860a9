"""A small causal transformer learns to add: "27+8=35". Micro-batches of few sequences, one update for every group."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 33
ALPHABET = "_0123456789+=$"  # _ is padding, $ the end
PAD = 0
MICRO = 16
GROUP = 4
EPOCHS = 9
torch.manual_seed(SEED)
random.seed(SEED)
HELD_OUT = {(a, b) for a in range(100) for b in range(10) if random.random() < 0.2}


def make_problem(held_out):
    """The answer is written with its last digit first. Some pairs of numbers are for testing only."""
    while True:
        a, b = random.randrange(100), random.randrange(10)
        if ((a, b) in HELD_OUT) == held_out:
            return f"{a}+{b}=", f"{a + b}"[::-1] + "$"


def encode(problems):
    """Inputs, targets one step on, and the weight of each target: only the answer's characters count."""
    rows = [[ALPHABET.index(c) for c in q + a] for q, a in problems]
    width = max(map(len, rows))
    tokens = torch.tensor([r + [PAD] * (width - len(r)) for r in rows])
    weight = torch.zeros(len(rows), width - 1)
    for i, (q, a) in enumerate(problems):
        weight[i, len(q) - 1:len(q) + len(a) - 1] = 1.0
    return tokens[:, :-1], tokens[:, 1:], weight


class Adder(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(len(ALPHABET), dim, padding_idx=PAD)
        self.places = nn.Embedding(12, dim)
        # one block, used twice
        self.block = nn.TransformerEncoderLayer(dim, heads, 96, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(dim)
        self.read = nn.Linear(dim, len(ALPHABET))

    def forward(self, x):
        length = x.size(1)
        h = self.tokens(x) + self.places(torch.arange(length))
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        # padding only ever follows a sequence, so the causal mask hides it from all positions that count
        for _ in range(2):
            h = self.block(h, src_mask=future)
        return self.read(self.norm(h))


def groups(problems):
    """Lists of up to GROUP micro-batches; the last list of an epoch may be shorter."""
    order = random.sample(problems, len(problems))
    micro = [order[i:i + MICRO] for i in range(0, len(order), MICRO)]
    return [micro[i:i + GROUP] for i in range(0, len(micro), GROUP)]


@torch.no_grad()
def solved(model, problems):
    model.eval()
    x, y, weight = encode(problems)
    right = (model(x).argmax(-1) == y) | (weight == 0)
    model.train()
    return right.all(dim=1).float().mean().item()


def main():
    train = [make_problem(False) for _ in range(1700)]
    test = [make_problem(True) for _ in range(300)]
    model = Adder()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
    updates = EPOCHS * len(groups(train))
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 6e-3, total_steps=updates)
    for epoch in range(EPOCHS):
        total, count = 0.0, 0.0
        for group in groups(train):
            encoded = [encode(problems) for problems in group]
            answer_chars = sum(weight.sum() for _, _, weight in encoded)
            for x, y, weight in encoded:
                losses = F.cross_entropy(model(x).transpose(1, 2), y, reduction="none")
                loss = (losses * weight).sum() / answer_chars
                loss.backward()
                total += (losses.detach() * weight).sum().item()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            count += answer_chars.item()
        print(f"epoch {epoch}: loss per character {total / count:.4f}  solved {solved(model, test):.3f}")
    return model


if __name__ == "__main__":
    main()
