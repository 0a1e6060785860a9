"""Electricity load, read as parallel streams by a recurrent net with truncated backpropagation: the hidden state goes on
from window to window. The job is interrupted half way and goes on from its checkpoint, streams included."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

STREAMS, LENGTH, WINDOW, HIDDEN, EPOCHS = 24, 640, 16, 32, 6


def make_load(generator):
    """Load switches between slow regimes announced by a rare pulse in the second channel."""
    t = torch.arange(LENGTH).float()
    shift = 2 * math.pi * torch.rand(STREAMS, 1, generator=generator)
    pulse = (torch.rand(STREAMS, LENGTH, generator=generator) < 0.03).float()
    regime = (pulse.cumsum(1) % 2) * 2 - 1
    load = torch.sin(2 * math.pi * t / 24 + shift) + 0.8 * regime.roll(1, dims=1)
    load[:, 0] = 0.0
    load = load + 0.1 * torch.randn(STREAMS, LENGTH, generator=generator)
    return torch.stack([load, pulse], dim=2)


class LoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(2, HIDDEN, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, x, state=None):
        h, state = self.rnn(x, state)
        return self.out(self.drop(h)).squeeze(-1), state


class Job:
    def __init__(self, series, checkpoint=None):
        self.series = series
        self.model = LoadNet()
        if checkpoint is not None:
            self.model.load_state_dict(checkpoint["model"], assign=True)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=4e-3)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=80, gamma=0.5)
        self.start, self.epoch, self.state = 0, 0, None
        if checkpoint is not None:
            self.optimizer.load_state_dict(checkpoint["optimizer"])
            self.scheduler.load_state_dict(checkpoint["scheduler"])
            self.start, self.epoch, self.state = checkpoint["start"], checkpoint["epoch"], checkpoint["state"]
            torch.set_rng_state(checkpoint["rng"])

    def checkpoint(self):
        return copy.deepcopy(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "start": self.start,
                "epoch": self.epoch,
                "state": self.state,
                "rng": torch.get_rng_state(),
            }
        )

    def run(self, n_windows):
        self.model.train()
        for _ in range(n_windows):
            x = self.series[:, self.start : self.start + WINDOW]
            y = self.series[:, self.start + 1 : self.start + WINDOW + 1, 0]
            prediction, state = self.model(x, self.state)
            loss = F.mse_loss(prediction, y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            self.state = tuple(s.detach() for s in state)
            self.start += WINDOW
            if self.start + WINDOW + 1 > LENGTH:
                self.start, self.state, self.epoch = 0, None, self.epoch + 1
        return loss.item()


@torch.no_grad()
def evaluate(model, series):
    model.eval()
    prediction, _ = model(series[:, :-1])
    return F.mse_loss(prediction[:, 24:], series[:, 25:, 0]).item()


if __name__ == "__main__":
    torch.manual_seed(19)
    generator = torch.Generator().manual_seed(19)
    train, val = make_load(generator), make_load(generator)
    total = EPOCHS * ((LENGTH - 1) // WINDOW)
    first = Job(train)
    print(f"start   val mse {evaluate(first.model, val):.4f}")
    loss = first.run(total // 2 + 5)
    saved = first.checkpoint()
    print(f"first   epoch {first.epoch}  loss {loss:.4f}  val mse {evaluate(first.model, val):.4f}")
    second = Job(train, copy.deepcopy(saved))
    loss = second.run(total - total // 2 - 5)
    print(f"second  epoch {second.epoch}  loss {loss:.4f}  val mse {evaluate(second.model, val):.4f}")
    torch.set_rng_state(saved["rng"])
    first.run(total - total // 2 - 5)
    a, b = (nn.utils.parameters_to_vector(job.model.parameters()) for job in (first, second))
    print(f"difference to the uninterrupted job {(a - b).abs().max().item():.1e}")
