"""Bearing vibration forecast with a stateful recurrent net on long recordings (truncated back-propagation).

The recordings are cut into consecutive pieces; lane i of a batch goes on where lane i of the batch before stopped.  After
training the net is run freely to see how far it can continue a recording.
"""
import math

import torch
import torch.nn as nn

torch.manual_seed(2)
LANES, PIECE, PIECES, HIDDEN, EPOCHS = 16, 40, 12, 32, 14


def record(lanes, steps):
    """Beating of two close frequencies that change from machine to machine, plus a small hum."""
    t = torch.arange(steps)[None] / 40
    f = 2 + 0.5 * torch.rand(lanes, 1)
    gap = 0.15 + 0.1 * torch.rand(lanes, 1)
    phase = 2 * math.pi * torch.rand(lanes, 3)
    x = torch.sin(2 * math.pi * f * t + phase[:, :1]) + 0.7 * torch.sin(2 * math.pi * (f + gap) * t + phase[:, 1:2])
    return x + 0.2 * torch.sin(2 * math.pi * 5 * t + phase[:, 2:]) + 0.03 * torch.randn(lanes, steps)


class HumNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, 1)
        self.first = nn.Parameter(torch.zeros(2, 1, 1, HIDDEN))

    def start(self, lanes):
        return tuple(s.expand(-1, lanes, -1).contiguous() for s in self.first)

    def forward(self, x, state):
        h, state = self.rnn(x.unsqueeze(-1), state)
        return x + self.out(h).squeeze(-1), state


def run_epoch(net, recording, optimizer=None):
    """One pass over the recordings, piece by piece; the first two pieces of the held-out pass only warm the state up."""
    state, losses = net.start(len(recording)), []
    for k in range(PIECES):
        piece = recording[:, k * PIECE:(k + 1) * PIECE + 1]
        prediction, state = net(piece[:, :-1], state)
        loss = (prediction - piece[:, 1:]).pow(2).mean()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        state = tuple(s.detach() for s in state)
        if k >= 2:
            losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def continue_freely(net, recording, known, steps):
    _, state = net(recording[:, :known - 1], net.start(len(recording)))
    value, out = recording[:, known - 1:known], []
    for _ in range(steps):
        value, state = net(value, state)
        out.append(value)
    return torch.cat(out, 1)


train, held = record(LANES * 2, PIECE * PIECES + 1), record(LANES, PIECE * PIECES + 1)
net = HumNet()
optimizer = torch.optim.Adam([
    {"params": [net.first], "lr": 1e-2},
    {"params": [p for n, p in net.named_parameters() if n != "first"], "lr": 6e-3},
])

for epoch in range(EPOCHS):
    order = torch.randperm(len(train))
    losses = [run_epoch(net, train[lanes], optimizer) for lanes in order.split(LANES)]
    if epoch % 4 == 1:
        with torch.no_grad():
            value = run_epoch(net, held)
        print(f"epoch {epoch:2d}  train {sum(losses) / len(losses):.4f}  held out {value:.4f}")

naive = (held[:, 1:] - held[:, :-1]).pow(2).mean().item()
free = continue_freely(net, held, 240, 20)
free_error = (free - held[:, 240:260]).pow(2).mean().item()
print(f"one step ahead: repeat the last value {naive:.4f}, net {value:.4f}")
print(f"20 steps run freely {free_error:.4f}, variance of the signal {held.var().item():.4f}")
