"""Speculative decoding heads (Medusa style) on a frozen causal model.

A base model is trained first. Then extra heads learn to name the tokens two and three steps ahead from the same hidden
state. The base model must stay exactly as it is, because it verifies the drafts.
"""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
VOCAB, WIDTH, LENGTH, HEADS = 12, 48, 20, 2


def make_text(n, gen):
    """Sequences from a second-order rule with a little noise."""
    seq = torch.randint(0, VOCAB, (n, LENGTH), generator=gen)
    for t in range(2, LENGTH):
        rule = (seq[:, t - 1] + 2 * seq[:, t - 2] + 1) % VOCAB
        noisy = torch.rand(n, generator=gen) < 0.05
        seq[:, t] = torch.where(noisy, seq[:, t], rule)
    return seq


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.lm_head = nn.Linear(WIDTH, VOCAB)

    def hidden(self, tokens):
        return self.drop(self.rnn(self.embed(tokens))[0])

    def forward(self, tokens):
        return self.lm_head(self.hidden(tokens))


class DraftHead(nn.Module):
    """A residual block that starts as the identity, then a copy of the output layer of the base."""

    def __init__(self, base):
        super().__init__()
        self.lift = nn.Linear(WIDTH, WIDTH)
        nn.init.zeros_(self.lift.weight)
        nn.init.zeros_(self.lift.bias)
        self.out = copy.deepcopy(base.lm_head).requires_grad_(True)

    def forward(self, h):
        return self.out(h + F.silu(self.lift(h)))


gen = torch.Generator().manual_seed(31)
train_text, test_text = make_text(1500, gen), make_text(200, gen)

base = Base()
optimizer = torch.optim.Adam(base.parameters(), lr=5e-3)
for step in range(250):
    rows = train_text[torch.randint(0, len(train_text), (32,), generator=gen)]
    loss = F.cross_entropy(base(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"base loss {loss.item():.3f}")

base.requires_grad_(False)
base.eval()
fingerprint = copy.deepcopy(base.state_dict())
heads = nn.ModuleList(DraftHead(base) for _ in range(HEADS))
optimizer = torch.optim.AdamW(heads.parameters(), lr=5e-3)

for step in range(250):
    rows = train_text[torch.randint(0, len(train_text), (32,), generator=gen)]
    with torch.no_grad():
        h = base.hidden(rows)
    optimizer.zero_grad()
    total = 0.0
    for k, head in enumerate(heads):
        ahead = k + 2
        loss = 0.8 ** k * F.cross_entropy(head(h[:, :-ahead]).flatten(0, 1), rows[:, ahead:].flatten())
        loss.backward()  # the heads share no trainable weight: each backward fills the gradients of one head
        total += loss.item()
    optimizer.step()
    if step % 50 == 0:
        print(f"head step {step:3d}  loss {total:.3f}")

assert all(torch.equal(v, fingerprint[k]) for k, v in base.state_dict().items())
with torch.no_grad():
    h = base.hidden(test_text)[:, 2:]
    for k, head in enumerate(heads):
        hit = (head(h[:, :-(k + 2)]).argmax(-1) == test_text[:, 2 + k + 2:]).float().mean().item()
        print(f"head {k}: top-1 {hit:.3f} for the token {k + 2} steps ahead")
