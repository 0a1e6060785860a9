import torch
from torch import nn

torch.manual_seed(107)


class Flat:
    def __init__(self, module, make):
        self.places = list(module.parameters())
        self.sizes = [p.numel() for p in self.places]
        self.vector = torch.cat([p.detach().flatten().double() for p in self.places])
        self.inner = make([self.vector])

    def clear(self):
        for p in self.places:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.vector.grad = torch.cat([p.grad.flatten().double() for p in self.places])
        self.inner.step()
        for place, piece in zip(self.places, self.vector.split(self.sizes)):
            place.copy_(piece.view_as(place))


def surrogate():
    return nn.Sequential(nn.Linear(3, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))


def spring(n, stiffness):
    state = torch.randn(n, 3)
    x, v, drag = state.T
    return state, (-stiffness * torch.sin(x) - drag.abs() * v).unsqueeze(1)


def simulate(module, engine, stiffness, rounds):
    errors = []
    for _ in range(rounds):
        state, force = spring(64, stiffness)
        engine.clear()
        error = nn.functional.mse_loss(module(state), force)
        error.backward()
        engine.step()
        errors.append(error.item())
    return errors


def adam(rate):
    return lambda params: torch.optim.Adam(params, lr=rate)


donor = surrogate()
errors = simulate(donor, Flat(donor, adam(1e-2)), stiffness=2.0, rounds=250)
print(f"donor  first {errors[0]:.4f}  last {errors[-1]:.4f}")

target = surrogate()
engine = Flat(target, adam(1e-3))
target.load_state_dict(donor.state_dict())
errors = simulate(target, engine, stiffness=2.3, rounds=60)
for k in (0, 1, 29, 59):
    print(f"target round {k + 1:2d}  error {errors[k]:.4f}")
