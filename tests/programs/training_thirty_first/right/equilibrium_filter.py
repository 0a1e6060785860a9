"""Removes noise from sensor frames with a deep equilibrium layer (Bai, Kolter, Koltun 2019).

The layer's output is the fixed point of a contraction.  It is solved for without a graph; the
gradient comes from the implicit function theorem, by a second fixed point in the backward pass.
"""
import torch
import torch.nn.functional as F
from torch import autograd, nn

SENSORS, STATE = 10, 24
STEPS, BATCH = 120, 48


def solve(step, start, tolerance=1e-6, limit=80):
    state = start
    for _ in range(limit):
        following = step(state)
        if (following - state).norm() <= tolerance * (1 + following.norm()):
            return following
        state = following
    return state


class Cell(nn.Module):
    def __init__(self, inputs, state, bound=0.8):
        super().__init__()
        self.bound = bound
        self.inject = nn.Linear(inputs, state)
        self.recurrent = nn.Parameter(0.1 * torch.randn(state, state))

    def weight(self):
        return self.recurrent * (self.bound / self.recurrent.norm().clamp(min=self.bound))

    def forward(self, z, x):
        return torch.tanh(z @ self.weight().t() + self.inject(x))


class Equilibrium(nn.Module):
    def __init__(self, cell, state):
        super().__init__()
        self.cell = cell
        self.state = state

    def forward(self, x):
        with torch.no_grad():
            z = solve(lambda z: self.cell(z, x), x.new_zeros(len(x), self.state))
        if not torch.is_grad_enabled():
            return z
        z = self.cell(z, x)

        at = z.detach().clone().requires_grad_()
        out = self.cell(at, x)

        def implicit(grad):
            def step(g):
                return autograd.grad(out, at, g, retain_graph=True)[0] + grad

            return solve(step, grad)

        z.register_hook(implicit)
        return z


class FrameFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Equilibrium(Cell(SENSORS, STATE), STATE)
        self.read = nn.Linear(STATE, SENSORS)

    def forward(self, frames):
        return self.read(self.layer(frames))


class Sensors:
    def __init__(self, generator):
        self.generator = generator
        self.mix = torch.randn(3, SENSORS, generator=generator)

    def frames(self, n):
        source = torch.randn(n, 3, generator=self.generator)
        clean = torch.sin(source @ self.mix)
        return clean + 0.3 * torch.randn(n, SENSORS, generator=self.generator), clean


@torch.no_grad()
def evaluate(model, noisy, clean):
    model.eval()
    error = F.mse_loss(model(noisy), clean).item()
    model.train()
    return error


def main():
    torch.manual_seed(29)
    sensors = Sensors(torch.Generator().manual_seed(290))
    test = sensors.frames(400)
    model = FrameFilter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    print(f"noise in the frames {F.mse_loss(*test).item():.4f}")
    for step in range(STEPS):
        noisy, clean = sensors.frames(BATCH)
        loss = F.mse_loss(model(noisy), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 24 == 0 or step == STEPS - 1:
            print(f"step {step:3d}  loss {loss.item():.4f}  test error {evaluate(model, *test):.4f}")
    return model, sensors


if __name__ == "__main__":
    model, sensors = main()
