"""Equilibrium abundances of a plankton community from lake covariates.

The community relaxes to a fixed point x* = f(x*, lake), which is found by iteration without a graph; the gradient comes
from the implicit function theorem: one further application of f is recorded, and a hook on it replaces the incoming
gradient g by the solution v of v = J^T v + g (Bai et al., 2019). Competition coefficients stay non-negative by projection.
"""
import torch
from torch import nn

torch.manual_seed(14)
SPECIES = 8


class Community(nn.Module):
    def __init__(self, covariates=5, width=24):
        super().__init__()
        self.supply = nn.Sequential(nn.Linear(covariates, width), nn.Tanh(), nn.Linear(width, SPECIES))
        self.competition = nn.Parameter(0.1 * torch.rand(SPECIES, SPECIES))
        self.register_buffer("not_self", 1.0 - torch.eye(SPECIES))

    def relax(self, x, supply):
        """One step towards the equilibrium; a contraction while the row sums of the competition stay below one."""
        pressure = x @ (self.competition * self.not_self).T
        return nn.functional.softplus(supply - pressure)

    def forward(self, lake, tol=1e-6, max_steps=80):
        supply = self.supply(lake)
        with torch.no_grad():
            x = torch.zeros_like(supply)
            for _ in range(max_steps):
                x_next = self.relax(x, supply)
                change = (x_next - x).abs().max()
                x = x_next
                if change < tol:
                    break
        if not torch.is_grad_enabled():
            return x

        x_star = self.relax(x, supply)
        x_in = x.clone().requires_grad_(True)
        x_out = self.relax(x_in, supply.detach())

        def solve_adjoint(grad):
            v = grad
            for _ in range(max_steps):
                (pulled,) = torch.autograd.grad(x_out, x_in, v, retain_graph=True)
                v_next = pulled + grad
                change = (v_next - v).abs().max()
                v = v_next
                if change < tol * grad.abs().max():
                    break
            return v

        x_star.register_hook(solve_adjoint)
        return x_star

    @torch.no_grad()
    def project(self, limit=0.9):
        self.competition.clamp_(min=0.0)
        rows = (self.competition * self.not_self).sum(1, keepdim=True)
        self.competition.mul_((limit / rows.clamp(min=1e-9)).clamp(max=1.0))


def make_lakes(n, true_model):
    lake = torch.randn(n, 5)
    with torch.no_grad():
        abundance = true_model(lake)
    return lake, abundance * torch.exp(0.05 * torch.randn_like(abundance))


def main():
    true_model = Community()
    with torch.no_grad():
        for p in true_model.supply.parameters():
            p.mul_(2.0)
        true_model.competition.copy_(torch.rand(SPECIES, SPECIES) * (torch.rand(SPECIES, SPECIES) < 0.4) * 0.7)
    true_model.project()
    lake, abundance = make_lakes(600, true_model)
    lake_test, abundance_test = make_lakes(200, true_model)

    model = Community()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=400)
    for step in range(400):
        index = torch.randint(0, len(lake), (64,))
        loss = (model(lake[index]) - abundance[index]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.project()
        scheduler.step()
        if step % 100 == 99:
            with torch.no_grad():
                test = (model(lake_test) - abundance_test).pow(2).mean().item()
            print(f"step {step + 1}  loss {loss.item():.5f}  test {test:.5f}  variance {abundance_test.var().item():.4f}")
    rows = (model.competition * model.not_self).sum(1).detach()
    print("competition felt by each species " + " ".join(f"{v:.2f}" for v in rows.tolist()))


if __name__ == "__main__":
    main()
