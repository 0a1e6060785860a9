"""Recurrent forecaster that carries its memory between batches."""
import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, n_series=3, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(n_series, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_series)
        self.memory = None

    def reset(self):
        self.memory = None

    def forward(self, x):
        y, memory = self.lstm(x, self.memory)
        self.memory = tuple(part.detach() for part in memory)
        return self.out(y)


def make_batches(n_batches, batch=4, length=12):
    t = torch.linspace(0, 20, n_batches * length + 1)
    wave = torch.stack([torch.sin(t), torch.cos(1.7 * t), torch.sin(0.3 * t)], dim=-1)
    data = wave.unsqueeze(0) + 0.05 * torch.randn(batch, wave.size(0), 3)
    for i in range(n_batches):
        piece = data[:, i * length:(i + 1) * length + 1]
        yield piece[:, :-1], piece[:, 1:]


def train(model, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.MSELoss()
    for epoch in range(epochs):
        model.reset()
        running = 0.0
        for x, y in make_batches(4):
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(epoch, running)


if __name__ == "__main__":
    torch.manual_seed(23)
    train(Forecaster())
