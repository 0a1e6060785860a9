"""Stateful LSTM over parallel sensor streams (port of Keras stateful=True with reset_states at record borders).

Long recordings are laid end to end in 16 streams. Each window goes on from the state that the window before it left;
where a new recording begins inside a window, the state of that stream is set back to zero.
The target is a running quantity of the recording, which no single window can tell.
"""
import torch
import torch.nn as nn

torch.manual_seed(30)

STREAMS = 16
LENGTH = 1440
WINDOW = 12
EPOCHS = 6


def make_streams():
    """Pulses of +1/-1 on a noisy line; target: the sign of the last pulse of the present recording (0: none yet)."""
    pulse = torch.zeros(STREAMS, LENGTH)
    hits = torch.rand(STREAMS, LENGTH) < 0.06
    pulse[hits] = torch.randint(0, 2, (int(hits.sum()),)).float() * 2 - 1
    starts = torch.rand(STREAMS, LENGTH) < 0.01
    starts[:, 0] = True
    target = torch.zeros(STREAMS, LENGTH, dtype=torch.long)
    level = torch.zeros(STREAMS)
    for t in range(LENGTH):
        level = torch.where(starts[:, t], torch.zeros(STREAMS), level)
        level = torch.where(pulse[:, t] != 0, pulse[:, t], level)
        target[:, t] = level.long() + 1
    signal = pulse + 0.15 * torch.randn(STREAMS, LENGTH)
    return signal.unsqueeze(-1), starts, target


class StatefulTagger(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.cell = nn.LSTMCell(1, hidden)
        self.readout = nn.Linear(hidden, 3)
        self.register_buffer("h", torch.zeros(STREAMS, hidden), persistent=False)
        self.register_buffer("c", torch.zeros(STREAMS, hidden), persistent=False)

    def reset_states(self):
        self.h = torch.zeros_like(self.h)
        self.c = torch.zeros_like(self.c)

    def forward(self, x, starts):
        h, c = self.h, self.c
        keep = (~starts).float().unsqueeze(-1)
        outputs = []
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h * keep[:, t], c * keep[:, t]))
            outputs.append(h)
        self.h, self.c = h.detach(), c.detach()
        return self.readout(torch.stack(outputs, dim=1))


def windows(streams):
    signal, starts, target = streams
    for a in range(0, LENGTH, WINDOW):
        yield signal[:, a:a + WINDOW], starts[:, a:a + WINDOW], target[:, a:a + WINDOW]


train, test = make_streams(), make_streams()
model = StatefulTagger()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    model.reset_states()
    total, count = 0.0, 0
    for x, starts, y in windows(train):
        loss = loss_fn(model(x, starts).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
        count += 1
    print(f"epoch {epoch + 1}: loss {total / count:.4f}")

model.eval()
model.reset_states()
right, first_half = [], []
with torch.no_grad():
    for x, starts, y in windows(test):
        hit = (model(x, starts).argmax(-1) == y).float()
        right.append(hit)
        first_half.append(hit[:, :WINDOW // 2])
print(f"accuracy {torch.cat(right, 1).mean():.3f}, in the first half of the windows {torch.cat(first_half, 1).mean():.3f}")
