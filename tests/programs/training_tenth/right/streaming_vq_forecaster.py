import math

import torch
from torch import nn
import torch.nn.functional as F

STREAMS, CHUNK, LATENT, CODES = 16, 20, 8, 32


def make_streams(length, generator):
    """Waves whose period switches at random times, with a little noise."""
    periods = torch.tensor([8.0, 13.0, 20.0])
    phase, kind = torch.zeros(STREAMS), torch.randint(3, (STREAMS,), generator=generator)
    values = []
    for _ in range(length):
        switch = torch.rand(STREAMS, generator=generator) < 0.01
        kind = torch.where(switch, torch.randint(3, (STREAMS,), generator=generator), kind)
        phase = phase + 2 * math.pi / periods[kind]
        values.append(torch.sin(phase))
    series = torch.stack(values, dim=1)
    return series + 0.05 * torch.randn(series.shape, generator=generator)


class Codebook(nn.Module):
    """Vector quantiser; the codes are buffers moved by running means, gradients go straight through."""

    def __init__(self, decay=0.97):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(CODES, LATENT))
        self.register_buffer("counts", torch.ones(CODES))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def track(self, flat, index):
        one_hot = F.one_hot(index, CODES).to(flat.dtype)
        self.counts.lerp_(one_hot.sum(0), 1 - self.decay)
        self.sums.lerp_(one_hot.T @ flat, 1 - self.decay)
        self.codes.copy_(self.sums / self.counts.clamp(min=1e-3)[:, None])
        dead = self.counts < 0.05
        if dead.any():
            fresh = flat[torch.randint(len(flat), (int(dead.sum()),))]
            self.codes[dead], self.sums[dead], self.counts[dead] = fresh, fresh, 1.0

    def forward(self, z):
        flat = z.detach().reshape(-1, LATENT)
        index = torch.cdist(flat, self.codes).argmin(1)
        quantised = self.codes[index].view_as(z)
        if self.training:
            self.track(flat, index)
        commitment = F.mse_loss(z, quantised)
        return z + (quantised - z).detach(), commitment


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.rnn = nn.GRU(1, width, batch_first=True)
        self.to_latent = nn.Linear(width, LATENT)
        self.codebook = Codebook()
        self.readout = nn.Sequential(nn.Linear(LATENT, width), nn.Tanh(), nn.Linear(width, 1))
        self.register_buffer("state", torch.zeros(1, STREAMS, width), persistent=False)

    def forward(self, x):
        hidden, last = self.rnn(x[..., None], self.state)
        self.state = last.detach()
        quantised, commitment = self.codebook(self.to_latent(hidden))
        return self.readout(quantised).squeeze(-1), commitment


def run_stream(model, series, optimizer=None):
    model.state.zero_()
    errors = []
    for start in range(0, series.shape[1] - CHUNK, CHUNK):
        x, y = series[:, start:start + CHUNK], series[:, start + 1:start + CHUNK + 1]
        with torch.set_grad_enabled(optimizer is not None):
            forecast, commitment = model(x)
            loss = F.mse_loss(forecast, y)
        if optimizer is not None:
            optimizer.zero_grad()
            (loss + 0.25 * commitment).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        errors.append(loss.item())
    return sum(errors) / len(errors)


generator = torch.Generator().manual_seed(2)
torch.manual_seed(2)
train, test = make_streams(800, generator), make_streams(400, generator)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    train_error = run_stream(model.train(), train, optimizer)
test_error = run_stream(model.eval(), test)
naive = (test[:, 1:] - test[:, :-1]).square().mean().item()
print(f"train {train_error:.4f} test {test_error:.4f} last value {naive:.4f}")
