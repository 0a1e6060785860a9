"""Identification of a rate-limited control valve from sparse position logs.

The valve follows its command with a first-order lag, but its stem cannot move faster than a limit from the data sheet.
Gain, time constant and the unlogged initial position of every record are fitted by simulating the records.
"""
import torch
from torch import nn

DT = 0.05
MAX_RATE = 0.8
LOG_EVERY = 10


class RateLimit(torch.autograd.Function):
    """Clip a move to +-limit; moves that were clipped pass no gradient."""

    @staticmethod
    def forward(ctx, move, limit):
        ctx.save_for_backward(move)
        ctx.limit = limit
        return move.clamp(-limit, limit)

    @staticmethod
    def backward(ctx, grad_output):
        (move,) = ctx.saved_tensors
        grad_move = grad_output
        grad_move[move.abs() > ctx.limit] = 0.0
        return grad_move, None


class Valve(nn.Module):
    def __init__(self, records, gain=1.0, time_constant=1.0):
        super().__init__()
        self.log_gain = nn.Parameter(torch.tensor(float(gain)).log())
        self.log_time_constant = nn.Parameter(torch.tensor(float(time_constant)).log())
        self.initial = nn.Parameter(torch.zeros(records))

    def forward(self, commands):
        """Positions at the logged instants, shape (records, logs)."""
        share = DT / self.log_time_constant.exp()
        demanded = self.log_gain.exp() * commands
        position = self.initial
        logged = []
        for step in range(commands.shape[1]):
            move = share * (demanded[:, step] - position)
            position = position + RateLimit.apply(move, DT * MAX_RATE)
            if (step + 1) % LOG_EVERY == 0:
                logged.append(position)
        return torch.stack(logged, dim=1)


def make_commands(records, steps, generator):
    """Steps between random set points, held for one to two seconds."""
    commands = torch.empty(records, steps)
    for record in range(records):
        start = 0
        while start < steps:
            hold = int(torch.randint(20, 40, (1,), generator=generator))
            commands[record, start : start + hold] = 1.5 * torch.randn(1, generator=generator)
            start += hold
    return commands


def make_records(records, steps, noise, generator):
    plant = Valve(records, gain=1.4, time_constant=0.35)
    commands = make_commands(records, steps, generator)
    with torch.no_grad():
        plant.initial.normal_(0.0, 1.5, generator=generator)
        logs = plant(commands)
        logs = logs + noise * torch.randn(logs.shape, generator=generator)
    return plant, commands, logs


def identify(model, commands, logs, steps):
    optimizer = torch.optim.Adam(
        [
            {"params": [model.log_gain, model.log_time_constant], "lr": 0.02},
            {"params": [model.initial], "lr": 0.05},
        ]
    )
    history = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = (model(commands) - logs).pow(2).mean()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        if step % 30 == 0:
            print(
                f"step {step:3d}  loss {loss.item():.5f}  gain {model.log_gain.exp().item():.3f}"
                f"  time constant {model.log_time_constant.exp().item():.3f}"
            )
    return history


def main():
    torch.manual_seed(2)
    generator = torch.Generator().manual_seed(6)
    plant, commands, logs = make_records(records=40, steps=50, noise=0.01, generator=generator)
    model = Valve(records=40)
    history = identify(model, commands, logs, steps=140)
    start_error = (model.initial - plant.initial).detach().pow(2).mean().sqrt().item()
    print(f"final loss {history[-1]:.5f}")
    print(f"gain {model.log_gain.exp().item():.3f} (plant 1.400)")
    print(f"time constant {model.log_time_constant.exp().item():.3f} (plant 0.350)")
    print(f"error of the initial positions {start_error:.3f}")
    return plant, model, commands, logs, history, start_error


if __name__ == "__main__":
    plant, model, commands, logs, history, start_error = main()
