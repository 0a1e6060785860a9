"""Rate constants of an enzyme from noisy progress curves, with an implicit integrator.

    S + E <-> C -> P + E,   dS = -k1 S (E0 - C) + kr C,   dC = k1 S (E0 - C) - (kr + k2) C

Each backward Euler step is solved by Newton iterations; the derivative of the solution follows from the implicit
function theorem.
"""
import torch
from torch import nn

torch.manual_seed(17)

E0 = 0.3
DT = 0.15
POINTS = 20
ROUNDS = 5
NOISE = 0.004


class Enzyme(nn.Module):
    def __init__(self, k1=1.0, kr=1.0, k2=1.0):
        super().__init__()
        self.log_k = nn.Parameter(torch.tensor([k1, kr, k2]).log())

    def rate(self, x):
        k1, kr, k2 = self.log_k.exp()
        s, c = x.unbind(dim=-1)
        bind = k1 * s * (E0 - c)
        return torch.stack([-bind + kr * c, bind - (kr + k2) * c], dim=-1)

    @torch.no_grad()
    def newton_matrix(self, x, dt):
        """I - dt * d rate / d x."""
        k1, kr, k2 = self.log_k.exp()
        s, c = x.unbind(dim=-1)
        m = x.new_empty(*x.shape, 2)
        m[..., 0, 0] = 1 + dt * k1 * (E0 - c)
        m[..., 0, 1] = -dt * (k1 * s + kr)
        m[..., 1, 0] = -dt * k1 * (E0 - c)
        m[..., 1, 1] = 1 + dt * (k1 * s + kr + k2)
        return m


def solve(matrix, rhs):
    return torch.linalg.solve(matrix, rhs.unsqueeze(-1)).squeeze(-1)


def implicit_step(model, x, dt, iterations=4):
    with torch.no_grad():
        z = x.clone()
        for _ in range(iterations):
            z -= solve(model.newton_matrix(z, dt), z - x - dt * model.rate(z))
        matrix = model.newton_matrix(z, dt)
    defect = z - x - dt * model.rate(z)
    return z - solve(matrix, defect)


def integrate(model, x0):
    path = x0.new_empty(POINTS + 1, *x0.shape)
    path[0] = x = x0
    for n in range(POINTS):
        x = implicit_step(model, x, DT)
        path[n + 1] = x
    return path


def measure(runs):
    truth = Enzyme(6.0, 0.8, 2.5)
    start = torch.stack([torch.linspace(0.2, 2.5, runs), torch.zeros(runs)], dim=-1)
    with torch.no_grad():
        path = integrate(truth, start)
    return start, path + NOISE * torch.randn_like(path), truth


def fit(model, start, data):
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4, line_search_fn="strong_wolfe")
    losses = []

    def closure():
        optimizer.zero_grad()
        loss = ((integrate(model, start) - data) / NOISE).pow(2).mean()
        loss.backward()
        losses.append(loss.item())
        return loss

    for k in range(ROUNDS):
        optimizer.step(closure)
        print(f"round {k}  misfit {losses[-1]:9.4f}  k = {[round(v, 3) for v in model.log_k.exp().tolist()]}")
    return losses


if __name__ == "__main__":
    start, data, truth = measure(12)
    enzyme = Enzyme()
    losses = fit(enzyme, start, data)
    km = lambda m: ((m.log_k[1].exp() + m.log_k[2].exp()) / m.log_k[0].exp()).item()
    print(f"Michaelis constant {km(enzyme):.3f} (simulated with {km(truth):.3f})")
