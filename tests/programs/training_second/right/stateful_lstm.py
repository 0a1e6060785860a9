import math

import torch
from torch import nn


class StreamModel(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.rnn = nn.LSTM(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)

    def forward(self, x, state=None):
        h, state = self.rnn(x, state)
        return self.out(h), state


def machine_signals(streams, length):
    t = torch.arange(length).float()
    period = 12 + 20 * torch.rand(streams, 1)
    phase = 2 * math.pi * torch.rand(streams, 1)
    base = torch.sin(2 * math.pi * t / period + phase)
    return torch.stack([base, base.roll(3, 1) * 0.5], -1) + 0.05 * torch.randn(streams, length, 2)


def train_pass(model, optimizer, signals, span, max_norm):
    state = None
    losses = []
    for start in range(0, signals.shape[1] - span, span):
        x = signals[:, start : start + span]
        y = signals[:, start + 1 : start + span + 1]
        if state is not None:
            state = tuple(s.detach() for s in state)
        prediction, state = model(x, state)
        loss = nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    signals = machine_signals(16, 161)
    model = StreamModel(2, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(5):
        loss = train_pass(model, optimizer, signals, span=20, max_norm=0.5)
        scheduler.step()
        print(f"pass {epoch} mse {loss:.5f} lr {scheduler.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    main()
