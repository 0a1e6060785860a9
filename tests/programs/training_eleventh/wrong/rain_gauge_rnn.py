"""Next-hour rainfall from a row of gauges: a GRU on synthetic weather with rare cloudbursts.

The station embedding comes from an earlier survey and stays fixed; the recurrent part and the readout are trained with
SGD and momentum.  Cloudbursts and gauge glitches make some batches violent, hence the gradient norm limit.
"""
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

SEED = 23
STATIONS, HOURS, WINDOW = 6, 3000, 12
STEPS, BATCH, MAX_NORM = 400, 32, 1.0


def synthetic_weather(rng, hours, glitches):
    """Humidity and pressure follow slow AR processes; rain starts where humid air meets low pressure."""
    humidity = np.zeros((hours, STATIONS))
    pressure = np.zeros((hours, STATIONS))
    for t in range(1, hours):
        neighbour = np.roll(humidity[t - 1], 1)
        humidity[t] = 0.75 * humidity[t - 1] + 0.2 * neighbour + 0.18 * rng.normal(size=STATIONS)
        pressure[t] = 0.95 * pressure[t - 1] + 0.2 * rng.normal(size=STATIONS)
    rain = np.log1p(np.exp(2.0 * humidity - 1.5 * pressure - 0.5))
    rain[1:] = 0.5 * rain[1:] + 0.5 * rain[:-1]
    if glitches:
        hit = rng.random((hours, STATIONS)) < 0.0015
        rain = np.where(hit, rain + 120.0, rain)
    observed = np.stack([humidity, pressure, np.log1p(rain)], axis=-1)
    return torch.tensor(observed, dtype=torch.float32), torch.tensor(rain, dtype=torch.float32)


def windows(observed, rain, starts):
    past = torch.stack([observed[s:s + WINDOW].flatten(1) for s in starts])
    target = torch.stack([rain[s + WINDOW] for s in starts])
    return past, target


class GaugeNet(nn.Module):
    def __init__(self, survey):
        super().__init__()
        self.site = nn.Embedding.from_pretrained(survey, freeze=True)
        self.rnn = nn.GRU(STATIONS * 3, 32, batch_first=True)
        self.readout = nn.Sequential(nn.Linear(32 + survey.shape[1] + 3, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, past):
        state = self.rnn(past)[0][:, -1]
        site = self.site(torch.arange(STATIONS))
        pair = torch.cat([
            state[:, None, :].expand(-1, STATIONS, -1),
            site[None, :, :].expand(state.shape[0], -1, -1),
            past[:, -1].unflatten(1, (STATIONS, 3)),
        ], dim=-1)
        return self.readout(pair).squeeze(-1)


@torch.no_grad()
def evaluate(net, observed, rain):
    net.eval()
    past, target = windows(observed, rain, range(0, len(observed) - WINDOW - 1, 2))
    error = F.mse_loss(net(past), target).item()
    net.train()
    return error / target.var().item()


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    observed, rain = synthetic_weather(rng, HOURS, glitches=True)
    observed_test, rain_test = synthetic_weather(rng, 700, glitches=False)

    survey = torch.eye(STATIONS) + 0.05 * torch.randn(STATIONS, STATIONS)
    net = GaugeNet(survey)
    trainable = filter(lambda p: p.requires_grad, net.parameters())
    optimizer = torch.optim.SGD(trainable, lr=0.04, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1.0, end_factor=0.5, total_iters=STEPS)

    print(f"largest reading {rain.max():.0f} mm, median {rain.median():.2f} mm")
    smooth = None
    for step in range(STEPS):
        starts = torch.randint(0, HOURS - WINDOW - 1, (BATCH,)).tolist()
        past, target = windows(observed, rain, starts)
        loss = F.mse_loss(net(past), target)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trainable, MAX_NORM)
        optimizer.step()
        scheduler.step()
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        if (step + 1) % 80 == 0:
            relative = evaluate(net, observed_test, rain_test)
            print(f"step {step + 1}  smoothed loss {smooth:9.2f}  held-out error / variance {relative:.3f}")

    final = evaluate(net, observed_test, rain_test)
    print(f"final held-out error / variance {final:.3f}")
    return final


if __name__ == "__main__":
    unexplained = main()
