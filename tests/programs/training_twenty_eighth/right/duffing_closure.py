"""Oscillator with partly known physics: learned damping and a learned correction, windowed backpropagation in time."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

DT = 0.08


class HybridOscillator(nn.Module):
    """x'' = -omega^2 x - c x' + N(x, x'), with omega known."""

    def __init__(self, width=32):
        super().__init__()
        self.register_buffer("omega_squared", torch.tensor(1.0))
        self.log_damping = nn.Parameter(torch.tensor(-3.0))
        self.correction = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1, bias=False))
        nn.init.normal_(self.correction[0].weight, std=1.5)
        nn.init.zeros_(self.correction[-1].weight)

    def derivative(self, state):
        x, v = state.split(1, dim=1)
        force = -self.omega_squared * x - self.log_damping.exp() * v + self.correction(state)
        return torch.cat([v, force], dim=1)

    def forward(self, state, steps):
        path = state.new_empty(steps, *state.shape)
        for k in range(steps):
            middle = state + 0.5 * DT * self.derivative(state)
            state = state + DT * self.derivative(middle)
            path[k] = state
        return path


class TrueOscillator(nn.Module):
    def derivative(self, state):
        x, v = state.split(1, dim=1)
        return torch.cat([v, -x - 0.15 * v - 0.8 * x ** 3], dim=1)

    @torch.no_grad()
    def forward(self, state, steps, sub=4):
        path = state.new_empty(steps, *state.shape)
        for k in range(steps):
            for _ in range(sub):
                middle = state + 0.5 * DT / sub * self.derivative(state)
                state = state + DT / sub * self.derivative(middle)
            path[k].copy_(state)
        return path


def start_states(count):
    return torch.empty(count, 2).uniform_(-1.5, 1.5)


def rollout_error(model, start, target):
    with torch.inference_mode():
        return F.mse_loss(model(start, len(target)), target).item()


def train(model, average, start, target, passes, window=6):
    optimizer = torch.optim.Adam(
        [
            {"params": model.correction.parameters(), "lr": 1e-2, "weight_decay": 1e-6},
            {"params": [model.log_damping], "lr": 3e-2},
        ]
    )
    for index in range(passes):
        state = start
        total = torch.zeros(())
        for first in range(0, len(target), window):
            truth = target[first:first + window]
            path = model(state, len(truth))
            loss = F.mse_loss(path, truth)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            average.update_parameters(model)
            state = path[-1].detach()
            total += loss.detach() * len(truth)
        if index % 10 == 9:
            print(f"pass {index + 1:3d}  loss {total.item() / len(target):.5f}  damping {model.log_damping.exp().item():.3f}")


def main(passes=70):
    torch.manual_seed(19)
    truth = TrueOscillator()
    start, test_start = start_states(64), start_states(64)
    target, test_target = truth(start, 30), truth(test_start, 50)

    model = HybridOscillator()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
    before = rollout_error(model, test_start, test_target)
    train(model, average, start, target, passes)
    after = rollout_error(model, test_start, test_target)
    smooth = rollout_error(average, test_start, test_target)
    print(f"long rollout error {before:.4f} -> {after:.5f} (averaged weights {smooth:.5f})")
    return model, average, (before, after, smooth)


if __name__ == "__main__":
    oscillator, averaged, errors = main()
