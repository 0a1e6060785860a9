"""Character language model on generated verses: tied output layer, truncated backpropagation.

The text is cut into parallel streams; the hidden state runs on from window to window, gradients
do not. Four windows share one update, so that the effective batch is larger.
"""
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(17)
torch.manual_seed(17)

STREAMS, WINDOW, ACCUMULATE = 20, 12, 4
DIM = 32
EPOCHS = 8
NOUNS = ["moon", "river", "stone", "bird", "night"]
VERBS = ["sings to", "follows", "forgets", "holds"]


def write_poem(lines):
    rows = []
    for _ in range(lines):
        noun = random.choice(NOUNS)
        rows.append(f"the {noun} {random.choice(VERBS)} the {random.choice(NOUNS)} and the {noun}.")
    return "\n".join(rows)


class CharModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.cell = nn.GRU(dim, dim, batch_first=True)
        self.decode = nn.Linear(dim, vocab)
        self.decode.weight = self.embed.weight

    def forward(self, chars, state=None):
        out, state = self.cell(self.embed(chars), state)
        return self.decode(out), state


def to_streams(ids, streams):
    usable = (len(ids) - 1) // streams * streams
    return ids[:usable].view(streams, -1), ids[1:usable + 1].view(streams, -1)


def windows(x, y):
    n = x.size(1) // WINDOW
    for i in range(n):
        cut = slice(i * WINDOW, (i + 1) * WINDOW)
        yield i, n, x[:, cut], y[:, cut]


poem = write_poem(330)
alphabet = sorted(set(poem))
ids = torch.tensor([alphabet.index(c) for c in poem])
split = int(0.85 * len(ids))
train_x, train_y = to_streams(ids[:split], STREAMS)
valid_x, valid_y = to_streams(ids[split:], 4)

model = CharModel(len(alphabet), DIM)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


@torch.no_grad()
def bits_per_char(x, y):
    logits, _ = model(x)
    return F.cross_entropy(logits.flatten(0, 1), y.flatten()).item() / math.log(2)


for epoch in range(EPOCHS):
    state, total, count = None, 0.0, 0
    optimizer.zero_grad()
    for i, n, x, y in windows(train_x, train_y):
        if state is not None:
            state = state.detach()
        logits, state = model(x, state)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        # the last group may hold fewer windows
        group = min(ACCUMULATE, n - i // ACCUMULATE * ACCUMULATE)
        (loss / group).backward()
        if (i + 1) % ACCUMULATE == 0 or i + 1 == n:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        total += loss.item()
        count += 1
    print(f"epoch {epoch}: train {total / count / math.log(2):.3f} bits  valid {bits_per_char(valid_x, valid_y):.3f} bits")

n_weights = sum(p.numel() for p in model.parameters())
print(f"{n_weights} weights, output layer shares the embedding: {model.decode.weight is model.embed.weight}")
