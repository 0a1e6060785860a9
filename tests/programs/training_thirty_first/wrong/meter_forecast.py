"""Forecast the next hours of electricity meters with a GRU encoder and a GRU decoder.

Meters report load with a daily rhythm and, now and then, a surge; gradients are clipped so that a batch
with surges does not throw the weights off.
"""
from itertools import chain

import torch
import torch.nn.functional as F
from torch import nn

HISTORY = 24
HORIZON = 6
MAX_NORM = 0.5


def make_meters(count, generator):
    length = HISTORY + HORIZON
    hours = torch.arange(length, dtype=torch.float32)
    phase = 24 * torch.rand(count, 1, generator=generator)
    level = 0.5 + torch.rand(count, 1, generator=generator)
    load = level * (1.0 + 0.6 * torch.sin(2 * torch.pi * (hours + phase) / 24))
    load = load + 0.05 * torch.randn(count, length, generator=generator)
    surge = (torch.rand(count, length, generator=generator) < 0.004).float()
    load = load + surge * (8.0 + 16.0 * torch.rand(count, length, generator=generator))
    return load[:, :HISTORY, None], load[:, HISTORY:, None]


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)

    def forward(self, history):
        return self.gru(history)[1]


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.cell = nn.GRUCell(1, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, last, state):
        state = state.squeeze(0)
        value, values = last, []
        for _ in range(HORIZON):
            state = self.cell(value, state)
            value = value + self.out(state)
            values.append(value)
        return torch.stack(values, dim=1)


class Forecaster:
    def __init__(self, hidden=16, lr=0.03):
        self.encoder = Encoder(hidden)
        self.decoder = Decoder(hidden)
        self.params = chain(self.encoder.parameters(), self.decoder.parameters())
        self.optimizer = torch.optim.SGD(self.params, lr=lr, momentum=0.9)

    def predict(self, history):
        return self.decoder(history[:, -1], self.encoder(history))

    def step(self, history, future):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.predict(history), future)
        loss.backward()
        nn.utils.clip_grad_norm_(self.params, MAX_NORM)
        self.optimizer.step()
        return loss.item()


def train(forecaster, history, future, steps=120, batch=16):
    losses = []
    for step in range(steps):
        pick = torch.randint(len(history), (batch,))
        losses.append(forecaster.step(history[pick], future[pick]))
        if step % 30 == 29:
            print(f"step {step + 1:4d}  mean loss {sum(losses[-30:]) / 30:.4f}")
    return losses


@torch.no_grad()
def median_error(forecaster, history, future):
    return (forecaster.predict(history) - future).abs().median().item()


if __name__ == "__main__":
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(21)
    history, future = make_meters(800, generator)
    test_history, test_future = make_meters(200, generator)
    forecaster = Forecaster()
    losses = train(forecaster, history, future)
    test_error = median_error(forecaster, test_history, test_future)
    print(f"median absolute error on the test meters {test_error:.4f}")
