import math

import torch
from torch import nn


def record(n, gen):
    t = torch.arange(n, dtype=torch.float32)
    wave = torch.sin(2 * math.pi * t / 17) + 0.5 * torch.sin(2 * math.pi * t / 5.3 + 1)
    return wave + 0.05 * torch.randn(n, generator=gen)


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.cell = nn.LSTM(1, hidden)
        self.read = nn.Linear(hidden, 1)

    def forward(self, chunk, state=None):
        out, state = self.cell(chunk, state)
        return self.read(out), tuple(s.detach() for s in state)


class Streams:
    def __init__(self, wave, lanes, window):
        usable = len(wave) // lanes * lanes
        self.table = wave[:usable].reshape(lanes, -1, 1).transpose(0, 1)
        self.window = window

    def __iter__(self):
        last = len(self.table) - 1
        for start in range(0, last - self.window + 1, self.window):
            stop = start + self.window
            yield self.table[start:stop], self.table[start + 1 : stop + 1]


def main():
    torch.manual_seed(101)
    gen = torch.Generator().manual_seed(7)
    wave = record(6016, gen)
    wave = (wave - wave.mean()) / wave.std()
    streams = Streams(wave, lanes=32, window=12)
    net = Forecaster()
    opt = torch.optim.RMSprop(net.parameters(), lr=4e-3)
    for epoch in range(7):
        state, total, count = None, 0.0, 0
        for now, nxt in streams:
            guess, state = net(now, state)
            loss = nn.functional.l1_loss(guess, nxt)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.5)
            opt.step()
            total, count = total + loss.item(), count + 1
        print(f"epoch {epoch}  l1 {total / count:.4f}")
    fresh = record(400, gen)
    fresh = ((fresh - fresh.mean()) / fresh.std())[:, None, None]
    with torch.no_grad():
        guess, _ = net(fresh[:-1])
    print(f"one step ahead on a fresh record: {(guess - fresh[1:]).abs().mean():.4f}")


if __name__ == "__main__":
    main()
