"""Causal physics-informed net for periodic advection with decay: Adam first, then L-BFGS from the best weights."""
import copy
import math

import torch
import torch.nn as nn

SPEED, DECAY = 2.0, 0.4
SLABS = 8


def exact(x, t):
    return torch.exp(-DECAY * t) * torch.sin(x - SPEED * t)


class PeriodicNet(nn.Module):
    """u(x, t) = sin(x) + t * N(features): the initial value holds by construction."""

    def __init__(self, width=32, waves=2):
        super().__init__()
        self.register_buffer("waves", torch.arange(1.0, waves + 1.0))
        self.hidden = nn.Linear(2 * waves + 1, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        phase = x * self.waves
        h = torch.cat([phase.sin(), phase.cos(), t - 0.5], dim=1)
        h = torch.tanh(self.hidden(h))
        h = h + torch.tanh(self.mix(h))
        return torch.sin(x) + t * self.out(h)


def squared_residual(net, x, t):
    x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
    u = net(x, t)
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    return (u_t + SPEED * u_x + DECAY * u).square()


def slab_points(per_slab=24):
    t = (torch.arange(SLABS).repeat_interleave(per_slab) + torch.rand(SLABS * per_slab)) / SLABS
    return 2 * math.pi * torch.rand(SLABS * per_slab, 1), t.unsqueeze(1)


class CausalWeights:
    """Weight of a time slab decays with the loss of all earlier slabs."""

    def __init__(self, strength=1.0):
        self.strength = strength
        self.earlier = torch.ones(SLABS, SLABS).tril(-1)

    @torch.no_grad()
    def __call__(self, slab_losses):
        return torch.exp(-self.strength * (self.earlier @ slab_losses))


def relative_error(net):
    x, t = torch.meshgrid(torch.linspace(0, 2 * math.pi, 41), torch.linspace(0, 1, 41), indexing="ij")
    x, t = x.reshape(-1, 1), t.reshape(-1, 1)
    with torch.no_grad():
        return ((net(x, t) - exact(x, t)).norm() / exact(x, t).norm()).item()


def adam_phase(net, steps):
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    weights = CausalWeights()
    probe = slab_points()
    best, best_loss = None, float("inf")
    for step in range(steps):
        losses = squared_residual(net, *slab_points()).view(SLABS, -1).mean(dim=1)
        w = weights(losses)
        loss = (w * losses).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            value = squared_residual(net, *probe).mean().item()
            if value < best_loss:
                best, best_loss = copy.deepcopy(net.state_dict()), value
        if step % 80 == 79:
            print(f"adam {step + 1:4d}  loss {loss.item():.5f}  last weight {w[-1].item():.3f}  error {relative_error(net):.4f}")
    net.load_state_dict(best)


def lbfgs_phase(net, rounds):
    x, t = slab_points(48)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=1.0, max_iter=20, history_size=30, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = squared_residual(net, x, t).mean()
        loss.backward()
        return loss

    for k in range(rounds):
        loss = optimizer.step(closure)
        print(f"l-bfgs round {k + 1}  loss at start {loss.item():.2e}  error {relative_error(net):.5f}")


def main():
    torch.manual_seed(6)
    net = PeriodicNet()
    adam_phase(net, 240)
    middle = relative_error(net)
    lbfgs_phase(net, 4)
    return net, middle, relative_error(net)


if __name__ == "__main__":
    solution, error_adam, error_final = main()
