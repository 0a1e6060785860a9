import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(23)


def rest(state):
    return {key: value.detach() for key, value in state.items()}


class TankModel(nn.Module):
    def __init__(self, inflows, units):
        super().__init__()
        self.units = units
        self.cells = nn.ModuleDict({"slow": nn.GRUCell(inflows, units), "quick": nn.RNNCell(inflows, units)})
        self.level = nn.Linear(2 * units, 1)

    def start(self, rows):
        return {key: torch.zeros(rows, self.units) for key in self.cells}

    def advance(self, inflow, state):
        new = {key: cell(inflow, state[key]) for key, cell in self.cells.items()}
        return self.level(torch.cat(tuple(new.values()), dim=1)).squeeze(1), new


class Runner:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=5e-3)

    def follow(self, inflow, level):
        state, errors = self.model.start(len(inflow)), []
        for now, target in zip(inflow.unbind(1), level.unbind(1)):
            guess, state = self.model.advance(now, rest(state))
            errors.append(F.mse_loss(guess, target))
        return torch.stack(errors).mean()

    def train_on(self, inflow, level):
        loss = self.follow(inflow, level)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


def simulate(rows, steps):
    inflow = torch.rand(rows, steps, 2)
    level, now = [], torch.zeros(rows)
    for t in range(steps):
        delayed = inflow[:, max(t - 4, 0), 1]
        now = 0.8 * now + inflow[:, t, 0] - 0.9 * delayed
        level.append(now)
    return inflow, torch.stack(level, dim=1)


runner = Runner(TankModel(2, 16))
for step in range(1, 101):
    loss = runner.train_on(*simulate(32, 16))
    if step % 25 == 0:
        with torch.no_grad():
            check = runner.follow(*simulate(64, 16)).item()
        print(f"step {step} loss {loss:.4f} fresh data {check:.4f}")
