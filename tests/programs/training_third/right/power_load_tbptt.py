import torch
import torch.nn as nn
import torch.nn.functional as F


class LoadForecaster(nn.Module):
    def __init__(self, width=24, layers=2):
        super().__init__()
        self.rnn = nn.LSTM(1, width, layers, batch_first=True)
        self.out = nn.Linear(width, 1)
        self.h0 = nn.Parameter(torch.zeros(layers, 1, width))
        self.c0 = nn.Parameter(torch.zeros(layers, 1, width))
        self._state = None

    def start(self):
        self._state = None

    def cut(self):
        self._state = tuple(s.detach() for s in self._state)

    def forward(self, x):
        if self._state is None:
            lanes = x.shape[0]
            state = tuple(s.expand(-1, lanes, -1).contiguous() for s in (self.h0, self.c0))
        else:
            state = self._state
        y, self._state = self.rnn(x, state)
        return self.out(y)


class Windows:
    def __init__(self, series, length):
        self.series, self.length = series, length

    def __iter__(self):
        for i in range(0, self.series.shape[1] - 1, self.length):
            stop = min(i + self.length, self.series.shape[1] - 1)
            yield self.series[:, i:stop], self.series[:, i + 1 : stop + 1]


def train_epoch(model, windows, optimizer, averages):
    model.start()
    for x, y in windows:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        model.cut()
        previous = averages[-1] if averages else loss.detach()
        averages.append(0.9 * previous + 0.1 * loss.detach())


@torch.no_grad()
def forecast_error(model, series):
    held = model._state
    model.start()
    error = F.mse_loss(model(series[:, :-1]), series[:, 1:]).item()
    model._state = held
    return error


def make_load(lanes=8, length=161):
    t = torch.arange(length).float()
    phase = 6.28 * torch.rand(lanes, 1)
    daily = torch.sin(2 * torch.pi * t / 24 + phase)
    weekly = 0.5 * torch.sin(2 * torch.pi * t / 80 + phase)
    return (daily + weekly + 0.05 * torch.randn(lanes, length))[..., None]


def main(epochs=6):
    torch.manual_seed(0)
    train, test = make_load(), make_load()
    model = LoadForecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    averages = []
    for epoch in range(epochs):
        train_epoch(model, Windows(train, 20), optimizer, averages)
        print(f"epoch {epoch} smoothed {averages[-1].item():.4f} test {forecast_error(model, test):.4f}")
    return model


if __name__ == "__main__":
    model = main()
