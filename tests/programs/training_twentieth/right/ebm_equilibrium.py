"""Implicit climate emulator: surface temperature as the fixed point of a learned energy balance.

A one-dimensional energy balance model with ice-albedo feedback generates the equilibria.  The emulator
finds its own fixed point by damped iteration and differentiates through it with the implicit function theorem.
"""
import torch
from torch import nn

torch.manual_seed(2)
BANDS, HIDDEN = 18, 40


def equilibria(n):
    """Relax the reference model to equilibrium for random solar constant and greenhouse offsets."""
    lat = torch.linspace(-1, 1, BANDS)
    sun = 1 - 0.48 * 0.5 * (3 * lat ** 2 - 1)
    solar = 1.0 + 0.08 * torch.randn(n, 1)
    offset = 0.15 * torch.randn(n, 1)
    temp = torch.zeros(n, BANDS)
    for _ in range(400):
        albedo = 0.3 + 0.15 * torch.sigmoid(-4 * (temp + 0.5))
        left = torch.cat([temp[:, :1], temp[:, :-1]], 1)
        right = torch.cat([temp[:, 1:], temp[:, -1:]], 1)
        flux = 3.0 * solar * sun * (1 - albedo) - 2.0 + offset - 1.0 * temp + 1.5 * (left - 2 * temp + right)
        temp = temp + 0.1 * flux
    return torch.cat([solar - 1.0, offset], 1) * 10, temp


class Balance(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(BANDS, HIDDEN, bias=False)
        self.forcing = nn.Linear(2, HIDDEN)
        self.back = nn.Linear(HIDDEN, BANDS)
        with torch.no_grad():
            self.mix.weight.mul_(0.5)
            self.back.weight.mul_(0.5)

    def forward(self, temp, force):
        return self.back(torch.tanh(self.mix(temp) + self.forcing(force)))


class Equilibrium(nn.Module):
    def __init__(self, balance, tol=1e-4, max_iter=60):
        super().__init__()
        self.balance, self.tol, self.max_iter = balance, tol, max_iter
        self.forward_iterations = self.backward_iterations = 0

    def iterate(self, update, start):
        z = start
        for i in range(self.max_iter):
            new = 0.3 * z + 0.7 * update(z)
            if (new - z).abs().max() <= self.tol * new.abs().max():
                return new, i + 1
            z = new
        return z, self.max_iter

    def forward(self, force):
        start = torch.zeros(len(force), BANDS)
        with torch.no_grad():
            z, self.forward_iterations = self.iterate(lambda v: self.balance(v, force), start)
        if not torch.is_grad_enabled():
            return z
        out = self.balance(z, force)
        z_in = z.detach().requires_grad_()
        again = self.balance(z_in, force)

        def solve(grad):
            def update(v):
                return grad + torch.autograd.grad(again, z_in, v, retain_graph=True)[0]
            v, self.backward_iterations = self.iterate(update, grad)
            return v

        out.register_hook(solve)
        return out


def main():
    force, temp = equilibria(600)
    train, test = (force[:480], temp[:480]), (force[480:], temp[480:])
    balance = Balance()
    model = Equilibrium(balance)
    optimizer = torch.optim.Adam(balance.parameters(), lr=5e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 120, gamma=0.4)
    for step in range(300):
        idx = torch.randint(480, (64,))
        loss = (model(train[0][idx]) - train[1][idx]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1}  mse {loss.item():.5f}  iterations {model.forward_iterations} forward, "
                  f"{model.backward_iterations} backward")
    with torch.no_grad():
        error = (model(test[0]) - test[1]).pow(2).mean().sqrt().item()
    print(f"test rmse {error:.4f}  (spread of the data {test[1].std(0).mean().item():.4f})")
    return model, error


if __name__ == "__main__":
    model, error = main()
