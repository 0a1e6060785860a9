"""Next-step forecast on long gauge recordings, read in windows; the LSTM's state goes on from window to window."""
import torch
import torch.nn as nn

SEED = 29
STREAMS = 24
WINDOW = 25
TRAIN_STEPS = 1000
EPOCHS = 10
torch.manual_seed(SEED)


def make_recordings(streams, steps, gen):
    """Every stream is the sum of two waves with periods and phases of its own, plus noise."""
    t = torch.arange(steps).float()
    phase = 6.28 * torch.rand(streams, 2, 1, generator=gen)
    period = 18 + 10 * torch.rand(streams, 2, 1, generator=gen)
    waves = torch.sin(6.28 * t / period + phase).sum(1)
    return (waves + 0.1 * torch.randn(streams, steps, generator=gen)).unsqueeze(-1)


class Windows:
    """Consecutive windows of all streams at once. The order is part of the data: never shuffle this."""

    def __init__(self, recordings):
        self.recordings = recordings

    def __iter__(self):
        last = self.recordings.size(1) - 1
        for start in range(0, last, WINDOW):
            stop = min(start + WINDOW, last)
            yield self.recordings[:, start:stop], self.recordings[:, start + 1:stop + 1]


class Forecaster(nn.Module):
    def __init__(self, hidden=40):
        super().__init__()
        self.rnn = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)
        # the start state is learned, one for all streams
        self.h0 = nn.Parameter(torch.zeros(1, 1, hidden))
        self.c0 = nn.Parameter(torch.zeros(1, 1, hidden))

    def start(self, streams):
        return self.h0.expand(-1, streams, -1).contiguous(), self.c0.expand(-1, streams, -1).contiguous()

    def forward(self, x, state):
        y, state = self.rnn(x, state)
        return x + self.out(y), state


def evaluate(model, recordings, carry=True):
    model.eval()
    error, count = 0.0, 0
    with torch.no_grad():
        state = model.start(len(recordings))
        for x, y in Windows(recordings):
            if not carry:
                state = model.start(len(recordings))
            pred, state = model(x, state)
            error += ((pred - y) ** 2).sum().item()
            count += y.numel()
    return error / count


def main():
    gen = torch.Generator().manual_seed(SEED)
    train = make_recordings(STREAMS, TRAIN_STEPS + 1, gen)
    test = make_recordings(STREAMS, 501, gen)
    model = Forecaster()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 8e-3, total_steps=EPOCHS * len(list(Windows(train))))
    for epoch in range(EPOCHS):
        model.train()
        state = model.start(STREAMS)
        total, windows = 0.0, 0
        for x, y in Windows(train):
            pred, state = model(x, state)
            loss = (pred - y).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            # values go on, gradients stop at the window's edge
            state = tuple(s.detach() for s in state)
            total += loss.item()
            windows += 1
        print(f"epoch {epoch}: train {total / windows:.4f}  test {evaluate(model, test):.4f}")
    print(f"test error with the state carried {evaluate(model, test):.4f}, "
          f"with a fresh state for every window {evaluate(model, test, carry=False):.4f}")
    print(f"learned start state: norm {model.h0.norm().item():.3f} and {model.c0.norm().item():.3f}")
    return model


if __name__ == "__main__":
    main()
