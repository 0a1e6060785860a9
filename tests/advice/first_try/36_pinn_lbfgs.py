import torch
import torch.nn as nn


class Field(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


class Problem:
    def __init__(self, n=40):
        self.x = torch.linspace(0, 1, n).unsqueeze(1).requires_grad_()
        self.source = -(3.1416**2) * torch.sin(3.1416 * self.x).detach()

    def losses(self, model):
        u = model(self.x)
        (du,) = torch.autograd.grad(u.sum(), self.x, create_graph=True)
        (ddu,) = torch.autograd.grad(du.sum(), self.x, create_graph=True)
        interior = (ddu - self.source).pow(2).mean()
        edge = u[[0, -1]].pow(2).mean()
        return interior, edge


class Balancer:
    def __init__(self, params):
        self.params = params
        self.weight = torch.tensor(1.0)

    def refresh(self, interior, edge):
        gi = torch.autograd.grad(interior, self.params, retain_graph=True, allow_unused=True)
        ge = torch.autograd.grad(edge, self.params)
        ni = torch.stack([g.norm() for g in gi if g is not None]).norm()
        ne = torch.stack([g.norm() for g in ge]).norm()
        self.weight.mul_(0.5).add_(0.5 * (ni / (ne + 1e-8)).clamp(1.0, 50.0))


class Solver:
    def __init__(self, problem, model):
        self.problem, self.model = problem, model
        self.params = list(model.parameters())
        self.balancer = Balancer(self.params)
        self.opt = torch.optim.LBFGS(self.params, max_iter=12, line_search_fn="strong_wolfe")
        self.logged = {}

    def losses(self):
        return self.problem.losses(self.model)

    def closure(self):
        self.opt.zero_grad()
        interior, edge = self.losses()
        interior.backward(retain_graph=True)
        (self.balancer.weight * edge).backward()
        self.logged["interior"] = interior.item()
        self.logged["edge"] = edge.item()
        return (interior + self.balancer.weight * edge).detach()

    def run(self, outer):
        for k in range(outer):
            self.balancer.refresh(*self.losses())
            self.opt.step(self.closure)
            interior, edge = self.losses()
            loss = interior.item() + edge.item()
            print(f"outer {k} loss {loss:.5f} weight {self.balancer.weight.item():.2f}")


def main():
    torch.manual_seed(7)
    problem = Problem()
    model = Field()
    Solver(problem, model).run(6)
    with torch.no_grad():
        err = (model(problem.x) - torch.sin(3.1416 * problem.x)).abs().max()
    print(f"max error {err.item():.4f}")


if __name__ == "__main__":
    main()
