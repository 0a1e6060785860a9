"""Grey-box identification of two cascaded tanks from one long record, by truncated backpropagation through time.

Torricelli outflows with unknown coefficients, plus a small net for what the physics leaves out.  The state is carried
from window to window; a running average of the parameters is used for the final simulation.
"""
import copy

import torch
from torch import nn

DT = 0.2


class Tanks(nn.Module):
    def __init__(self, outflow=(0.5, 0.5), inflow=0.5, with_net=True):
        super().__init__()
        self.outflow = nn.Parameter(torch.tensor(outflow))
        self.inflow = nn.Parameter(torch.tensor(inflow))
        self.extra = None
        if with_net:
            self.extra = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
            nn.init.zeros_(self.extra[-1].weight)
            nn.init.zeros_(self.extra[-1].bias)

    def step(self, levels, pump):
        flow = self.outflow * (levels + 1e-3).sqrt()
        rates = torch.stack([self.inflow * pump - flow[0], flow[0] - flow[1]])
        if self.extra is not None:
            rates = rates + self.extra(torch.cat([levels, pump.view(1)]))
        return (levels + DT * rates).clamp_min(0.0)

    def forward(self, levels, pumps):
        trace = []
        for pump in pumps:
            levels = self.step(levels, pump)
            trace.append(levels)
        return torch.stack(trace), levels


class Plant(Tanks):
    """The tanks of the experiment: as the model without the net, with a leak in the lower one."""

    def step(self, levels, pump):
        levels = super().step(levels, pump)
        leak = 0.05 * (levels[1] - 0.5).clamp_min(0.0)
        return torch.stack([levels[0], (levels[1] - DT * leak).clamp_min(0.0)])


@torch.no_grad()
def record(length, generator):
    plant = Plant((0.62, 0.55), 0.7, with_net=False)
    pumps = (0.4 + 1.2 * torch.rand(length // 20, generator=generator)).repeat_interleave(20)
    levels, _ = plant(torch.ones(2), pumps)
    return pumps, levels + 0.01 * torch.randn(levels.shape, generator=generator)


@torch.no_grad()
def update_average(average, model, step, decay=0.95):
    weight = 1.0 - min(decay, (1 + step) / (10 + step))
    for slow, fast in zip(average.parameters(), model.parameters()):
        slow.lerp_(fast, weight)


@torch.no_grad()
def keep_physical(model):
    model.outflow.clamp_(min=0.05)
    model.inflow.clamp_(min=0.05)


def simulate(model, pumps, levels):
    with torch.no_grad():
        trace, _ = model(torch.ones(2), pumps)
    return (trace - levels).pow(2).mean().sqrt().item()


def main():
    torch.manual_seed(6)
    generator = torch.Generator().manual_seed(12)
    pumps, levels = record(300, generator)
    new_pumps, new_levels = record(160, generator)
    model = Tanks()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(
        [{"params": [model.outflow, model.inflow], "lr": 0.02}, {"params": model.extra.parameters(), "lr": 2e-3}]
    )
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
    first = simulate(model, new_pumps, new_levels)
    updates, window = 0, 25
    for sweep in range(6):
        state = torch.ones(2)
        total = 0.0
        for start in range(0, len(pumps), window):
            trace, state = model(state.detach(), pumps[start : start + window])
            loss = (trace - levels[start : start + window]).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keep_physical(model)
            update_average(average, model, updates)
            updates += 1
            total += loss.item()
        schedule.step()
        print(f"sweep {sweep}  loss {total * window / len(pumps):.5f}  outflow {model.outflow[0].item():.3f} {model.outflow[1].item():.3f}")
    last = simulate(average, new_pumps, new_levels)
    print(f"simulation error on the second record {first:.4f} -> {last:.4f}")
    return model, average, first, last


if __name__ == "__main__":
    model, average, first, last = main()
