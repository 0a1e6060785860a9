"""Stateful char LSTM, trained by truncated backpropagation through time on a long stream of
small sums such as '3+5=8;'. Every row of the batch reads its own part of the stream."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(4)
torch.manual_seed(4)

ROWS = 20
CHUNK = 24
EPOCHS = 4
HIDDEN = 80


def make_stream(n):
    """Sums with a running counter: every sum's first number follows the one before."""
    parts, a = [], 0
    for _ in range(n):
        b = random.randint(0, 4)
        parts.append(f"{a}+{b}={a + b};")
        a = (a + 1) % 6
    return "".join(parts)


text = make_stream(6000)
chars = sorted(set(text))
encode = {c: i for i, c in enumerate(chars)}
stream = torch.tensor([encode[c] for c in text])


def as_rows(ids, rows):
    n = (len(ids) - 1) // rows
    return ids[: n * rows].view(rows, n), ids[1 : n * rows + 1].view(rows, n)


class CharLSTM(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, 16)
        self.lstm = nn.LSTM(16, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(hidden, vocab)
        self.h0 = nn.Parameter(torch.zeros(1, 1, hidden))
        self.c0 = nn.Parameter(torch.zeros(1, 1, hidden))

    def start(self, rows):
        return tuple(s.expand(-1, rows, -1).contiguous() for s in (self.h0, self.c0))

    def forward(self, x, state):
        h, state = self.lstm(self.embed(x), state)
        return self.out(self.dropout(h)), state


def run_epoch(model, x, y, optimizer=None):
    """One pass in reading order; the state goes on from chunk to chunk as a plain value."""
    training = optimizer is not None
    model.train(training)
    state = model.start(x.size(0))
    total, count = 0.0, 0
    with torch.set_grad_enabled(training):
        for x_chunk, y_chunk in zip(x.split(CHUNK, dim=1), y.split(CHUNK, dim=1)):
            logits, state = model(x_chunk, state)
            loss = F.cross_entropy(logits.flatten(0, 1), y_chunk.flatten())
            if training:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            state = tuple(s.detach() for s in state)
            total += loss.item() * y_chunk.numel()
            count += y_chunk.numel()
    return total / count


split = int(0.9 * len(stream))
train_x, train_y = as_rows(stream[:split], ROWS)
val_x, val_y = as_rows(stream[split:], 4)

model = CharLSTM(len(chars), HIDDEN)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(EPOCHS):
    train_loss = run_epoch(model, train_x, train_y, optimizer)
    val_loss = run_epoch(model, val_x, val_y)
    print(f"epoch {epoch + 1}: train {train_loss:.4f}  val {val_loss:.4f} nats per character")
print(f"lower bound from the random summand: {torch.log(torch.tensor(5.0)).item() / 6:.4f}")
