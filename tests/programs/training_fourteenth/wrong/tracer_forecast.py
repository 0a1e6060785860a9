"""Convolutional surrogate for a 1-D advected, diffusing tracer; trained on short rollouts, judged on long ones."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)

GRID, STEPS = 48, 24
N_TRAIN, N_VAL = 96, 32
UNROLL = 3


def spectral_step(u, speed=1.3, nu=0.004, dt=0.02):
    """One exact step of the linear part in Fourier space, followed by a weak Burgers term."""
    k = 2 * torch.pi * torch.fft.rfftfreq(GRID, d=1.0 / GRID)
    uh = torch.fft.rfft(u)
    u = torch.fft.irfft(uh * torch.exp((-1j * speed * k - nu * k ** 2) * dt), n=GRID)
    ux = torch.fft.irfft(1j * k * torch.fft.rfft(u), n=GRID)
    return u - 0.08 * dt * u * ux


def simulate(n):
    x = torch.arange(GRID) / GRID
    modes = torch.arange(1, 5)
    amplitude = torch.randn(n, 4) / modes
    phase = 2 * torch.pi * torch.rand(n, 4)
    u = (amplitude[..., None] * torch.sin(2 * torch.pi * modes[:, None] * x + phase[..., None])).sum(1)
    frames = [u]
    for _ in range(STEPS):
        frames.append(spectral_step(frames[-1]))
    return torch.stack(frames, dim=1)


class Tendency(nn.Module):
    """Predicts the increment of the field over one step."""

    def __init__(self, width=24):
        super().__init__()
        self.lift = nn.Conv1d(1, width, 5, padding=2, padding_mode="circular")
        self.mix = nn.Conv1d(width, width, 5, padding=2, padding_mode="circular")
        self.project = nn.Conv1d(width, 1, 5, padding=2, padding_mode="circular")
        nn.init.zeros_(self.project.weight)
        nn.init.zeros_(self.project.bias)

    def forward(self, u):
        h = F.gelu(self.lift(u.unsqueeze(1)))
        h = h + F.gelu(self.mix(h))
        return self.project(h).squeeze(1)


def unrolled_loss(model, window):
    state = window[:, 0]
    loss = 0.0
    for t in range(1, UNROLL + 1):
        state = state + model(state)
        loss = loss + F.mse_loss(state, window[:, t])
    return loss / UNROLL


@torch.no_grad()
def forecast_skill(model, fields):
    """RMSE per lead time of a free-running forecast, and the same for persistence."""
    model.eval()
    state = fields[:, 0]
    forecast = []
    for _ in range(STEPS):
        state += model(state)
        forecast.append(state.clone())
    forecast = torch.stack(forecast, dim=1)
    error = (forecast - fields[:, 1:]).pow(2).mean(dim=(0, 2)).sqrt()
    persistence = (fields[:, :1] - fields[:, 1:]).pow(2).mean(dim=(0, 2)).sqrt()
    model.train()
    return error, persistence


fields = simulate(N_TRAIN + N_VAL)
scale = fields[:N_TRAIN].std()
fields = fields / scale
train, val = fields[:N_TRAIN], fields[N_TRAIN:]

model = Tendency()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)

history = []
for epoch in range(18):
    for idx in torch.randperm(N_TRAIN).split(16):
        start = torch.randint(0, STEPS - UNROLL, ()).item()
        window = train[idx, start:start + UNROLL + 1]
        loss = unrolled_loss(model, window)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    error, persistence = forecast_skill(model, val)
    history.append(error.mean().item())
    scheduler.step(history[-1])
    if (epoch + 1) % 3 == 0:
        print(f"epoch {epoch + 1:2d}  loss {loss.item():.5f}  rollout rmse {history[-1]:.4f}  "
              f"persistence {persistence.mean().item():.4f}  lr {optimizer.param_groups[0]['lr']:.1e}")

print(f"lead 1: {error[0].item():.4f}   lead {STEPS}: {error[-1].item():.4f}   best epoch {history.index(min(history)) + 1}")
