"""Small language model on melodies, trained with gradient accumulation over unequal micro-batches.

Sequences differ in length, so the loss of a micro-batch is a sum and the accumulated gradient is
divided by the number of tokens of the whole step. Input and output embeddings are shared.
"""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(37)

NOTES, PAD, MAX_LEN = 24, 0, 40
MICRO, STEPS = 4, 120

transition = F.softmax(3.0 * torch.randn(NOTES, NOTES, NOTES), dim=-1)  # second order


def melodies(n):
    lengths = torch.randint(8, MAX_LEN + 1, (n,))
    seq = torch.zeros(n, MAX_LEN, dtype=torch.long)
    seq[:, :2] = torch.randint(1, NOTES, (n, 2))
    for t in range(2, MAX_LEN):
        p = transition[seq[:, t - 2] // 6, seq[:, t - 1]].clone()
        p[:, PAD] = 0
        seq[:, t] = torch.multinomial(p, 1).squeeze(1)
    seq[torch.arange(MAX_LEN)[None, :] >= lengths[:, None]] = PAD
    return seq


class MelodyModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.notes = nn.Embedding(NOTES, width)
        nn.init.normal_(self.notes.weight, std=width**-0.5)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, NOTES)
        self.out.weight = self.notes.weight

    def forward(self, seq):
        h, _ = self.rnn(self.notes(seq))
        return self.out(self.norm(h))


def summed_loss(model, seq):
    logits = model(seq[:, :-1])
    target = seq[:, 1:]
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")
    return loss, int((target != PAD).sum())


@torch.no_grad()
def perplexity(model, seq):
    loss, tokens = summed_loss(model, seq)
    return math.exp(loss.item() / tokens)


train_set, test_set = melodies(3000), melodies(400)
# long and short melodies are kept apart so that little is spent on padding
by_length = (train_set != PAD).sum(1).argsort()
buckets = train_set[by_length].split(24)

model = MelodyModel()
decay = [p for p in model.parameters() if p.dim() >= 2]
no_decay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=8e-3
)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))

print(f"start      perplexity {perplexity(model, test_set):.2f}")
pending_tokens, pending_loss, step = 0, 0.0, 0
optimizer.zero_grad()
for micro in range(1, MICRO * STEPS + 1):
    batch = buckets[int(torch.randint(len(buckets), ()))]
    batch = batch[:, : int((batch != PAD).sum(1).max())]
    loss, tokens = summed_loss(model, batch)
    loss.backward()
    pending_tokens += tokens
    pending_loss += loss.item()
    if micro % MICRO:
        continue
    for p in model.parameters():
        p.grad.div_(pending_tokens)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warm_up.step()
    optimizer.zero_grad()
    step += 1
    if step % 30 == 0:
        print(f"step {step:4d}  train {math.exp(pending_loss / pending_tokens):.2f}  perplexity {perplexity(model, test_set):.2f}")
    pending_tokens, pending_loss = 0, 0.0
