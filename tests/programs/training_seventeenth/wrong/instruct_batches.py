"""Instruction tuning of a small causal LM: prompts of one of two tasks, answers of very different length.

Memory allows 4 dialogues at a time, so an effective batch of 16 is gathered over 4 micro-batches, sorted by length
to save padding. The loss of the effective batch is the mean over all its answer tokens.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(21)

VOCAB, DIM = 20, 40
PAD, YESNO, RECITE, SEP = 20, 21, 22, 23
MICRO, ACCUMULATE, UPDATES = 4, 4, 220
IGNORE = -100


def short_dialogue():
    """Yes/no question; annotators agree on three answers out of four."""
    word = torch.randint(VOCAB, (1,)).item()
    answer = word % 2 if torch.rand(1).item() < 0.75 else 1 - word % 2
    return [YESNO, word, SEP], [answer]


def long_dialogue():
    """Recite from a given word on, with one step size per starting word."""
    word = torch.randint(VOCAB, (1,)).item()
    stride = 1 + word % 5
    return [RECITE, word, SEP], [(word + stride * (i + 1)) % VOCAB for i in range(16)]


def effective_batch(n):
    dialogues = [long_dialogue() if i % 4 == 0 else short_dialogue() for i in range(n)]
    return sorted(dialogues, key=lambda d: len(d[1]))


def collate(dialogues):
    width = max(len(prompt) + len(answer) for prompt, answer in dialogues)
    ids = torch.full((len(dialogues), width), PAD)
    labels = torch.full((len(dialogues), width), IGNORE)
    for row, (prompt, answer) in enumerate(dialogues):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt):end] = torch.tensor(answer)
    return ids, labels


class CausalLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB + 4, DIM, padding_idx=PAD)
        self.rnn = nn.GRU(DIM, DIM, batch_first=True)
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, ids):
        hidden, _ = self.rnn(self.embed(ids))
        return self.head(hidden)


def answer_loss(model, ids, labels, reduction="mean"):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE, reduction=reduction)


def train_update(model, optimizer, dialogues):
    optimizer.zero_grad()
    total = 0.0
    for start in range(0, len(dialogues), MICRO):
        ids, labels = collate(dialogues[start:start + MICRO])
        loss = answer_loss(model, ids, labels) / ACCUMULATE
        loss.backward()
        total += loss.item()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return total


model = CausalLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=UPDATES)

for update in range(UPDATES):
    loss = train_update(model, optimizer, effective_batch(MICRO * ACCUMULATE))
    schedule.step()
    if (update + 1) % 55 == 0:
        print(f"update {update + 1:3d}  loss {loss:.4f}")

model.eval()
held_out = effective_batch(400)
with torch.no_grad():
    ids, labels = collate(held_out)
    token_loss = answer_loss(model, ids, labels).item()
print(f"held-out loss per answer token {token_loss:.4f}")
