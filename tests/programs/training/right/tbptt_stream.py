"""Truncated backpropagation through time on one long signal."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CHUNK, STREAMS = 20, 8


class Predictor(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.rnn(x, state)
        return self.out(h), state


def signals(streams, length):
    t = torch.arange(length).float()
    phase = 2 * torch.pi * torch.rand(streams, 1)
    s = torch.sin(0.2 * t + phase) + 0.5 * torch.sin(0.05 * t - phase)
    return (s + 0.02 * torch.randn(streams, length)).unsqueeze(-1)


def detach(state):
    return tuple(s.detach() for s in state)


def main():
    torch.manual_seed(49)
    data = signals(STREAMS, 201)
    x, y = data[:, :-1], data[:, 1:]
    model = Predictor()
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    history = []
    for epoch in range(10):
        state = None
        losses = []
        for start in range(0, x.shape[1], CHUNK):
            xb, yb = x[:, start : start + CHUNK], y[:, start : start + CHUNK]
            if state is not None:
                state = detach(state)
            pred, state = model(xb, state)
            loss = F.mse_loss(pred, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.detach())
        history.append(torch.stack(losses).mean().item())
    print("loss per epoch:", [round(v, 4) for v in history])


if __name__ == "__main__":
    main()
