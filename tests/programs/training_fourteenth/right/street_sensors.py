"""Blind calibration of co-located street sensors against one certified instrument, robust to spikes."""
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(37)

N_SENSORS, N_HOURS = 16, 720
NOISE, SPIKE_RATE = 0.05, 0.08
TUNING = 4.7  # Tukey's biweight, in units of the residual scale
BLOCK = 180
SWEEPS = 500
REFERENCE = 0


def tukey_weight(residual, scale):
    u = residual / (TUNING * scale)
    return (1 - u ** 2).clamp(min=0.0) ** 2


class Network(nn.Module):
    """reading[s, t] = gain[s] * level[t] + drift[s] * temperature[t] + offset[s]"""

    def __init__(self, first_guess):
        super().__init__()
        self.level = nn.Parameter(first_guess.clone())
        self.gain = nn.Parameter(torch.ones(N_SENSORS))
        self.offset = nn.Parameter(torch.zeros(N_SENSORS))
        self.drift = nn.Parameter(torch.zeros(N_SENSORS))
        mask = torch.ones(N_SENSORS)
        mask[REFERENCE] = 0.0
        # the certified instrument defines the units: gain one, no offset, no drift
        for p in (self.gain, self.offset, self.drift):
            p.register_hook(lambda g: g * mask)

    def forward(self, temperature, hours):
        level = self.level[hours]
        return (self.gain[:, None] * level + self.drift[:, None] * temperature[hours] + self.offset[:, None])

    def calibrate(self, readings, temperature):
        return (readings - self.drift[:, None] * temperature - self.offset[:, None]) / self.gain[:, None]


hours = torch.arange(N_HOURS, dtype=torch.float32)
daily = torch.sin(2 * torch.pi * hours / 24)
temperature = 0.8 * torch.sin(2 * torch.pi * (hours - 5) / 24) + 0.3 * torch.randn(N_HOURS)
level = 1.5 + 0.6 * daily.abs() + 0.5 * torch.sin(2 * torch.pi * hours / 168) + 0.1 * torch.randn(N_HOURS)
gain = 1 + 0.25 * torch.randn(N_SENSORS).clamp(-2, 2)
offset, drift = 0.3 * torch.randn(N_SENSORS), 0.2 * torch.randn(N_SENSORS)
gain[REFERENCE], offset[REFERENCE], drift[REFERENCE] = 1.0, 0.0, 0.0
readings = gain[:, None] * level + drift[:, None] * temperature + offset[:, None]
readings = readings + NOISE * torch.randn_like(readings)
spikes = torch.rand_like(readings) < SPIKE_RATE
readings = torch.where(spikes, readings + 3 * torch.rand_like(readings), readings)

model = Network(readings[REFERENCE])
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.97))
optimizer = torch.optim.Adam([
    {"params": [model.level], "lr": 2e-2},
    {"params": [model.gain, model.offset, model.drift], "lr": 1e-2},
], betas=(0.9, 0.99))
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=SWEEPS, power=1.0)

scale = torch.full((N_SENSORS, 1), 0.5)
for sweep in range(SWEEPS):
    # re-estimate the spread of every sensor now and then, then hold it fixed
    if sweep % 25 == 0 and sweep > 0:
        with torch.no_grad():
            residual = readings - model(temperature, slice(None))
            scale = (1.4826 * residual.abs().median(dim=1, keepdim=True).values).clamp(min=NOISE / 2)
    optimizer.zero_grad()
    objective = 0.0
    for begin in range(0, N_HOURS, BLOCK):
        span = slice(begin, begin + BLOCK)
        residual = readings[:, span] - model(temperature, span)
        weight = tukey_weight(residual.detach(), scale)
        loss = 0.5 * (weight * (residual / scale) ** 2).sum() / N_HOURS
        loss.backward()
        objective += loss.item()
    optimizer.step()
    scheduler.step()
    average.update_parameters(model)
    if (sweep + 1) % 100 == 0:
        print(f"sweep {sweep + 1}  weighted misfit {objective:.4f}  typical scale {scale.median().item():.4f}")

with torch.no_grad():
    fitted = average.module
    before = (readings - level)[~spikes].pow(2).mean().sqrt().item()
    after = (fitted.calibrate(readings, temperature) - level)[~spikes].pow(2).mean().sqrt().item()
    gain_error = (fitted.gain - gain).abs().max().item()
print(f"rmse of raw readings {before:.4f}, calibrated {after:.4f}; largest gain error {gain_error:.4f}; "
      f"reference gain {fitted.gain[REFERENCE].item():.1f}")
