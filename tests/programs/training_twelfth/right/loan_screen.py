"""Credit scoring with a limit on the approval gap between two groups. The network minimizes the loss, the multiplier of
the constraint maximizes the Lagrangian (one backward pass for both, gradient descent-ascent)."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(71)

GAP_LIMIT = 0.05


def make_applicants(n, gen):
    group = (torch.rand(n, generator=gen) < 0.4).float()
    income = torch.randn(n, generator=gen) - 0.8 * group
    debt = torch.randn(n, generator=gen) + 0.3 * group
    history = torch.randn(n, generator=gen)
    tenure = torch.randn(n, generator=gen)
    logit = 1.5 * income - 1.2 * debt + 0.8 * history * (tenure > 0) + 0.5
    y = (torch.rand(n, generator=gen) < torch.sigmoid(logit)).float()
    return torch.stack([income, debt, history, tenure, group], dim=1), y, group


class Scorer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                 nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def approval_gap(logits, group):
    rate = torch.sigmoid(logits)
    g0 = (rate * (1 - group)).sum() / (1 - group).sum()
    g1 = (rate * group).sum() / group.sum()
    return (g0 - g1).abs()


class Multiplier(nn.Module):
    """Non-negative multiplier of an inequality constraint value <= 0."""

    def __init__(self, start=0.1):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(float(start)))
        self.raw.register_hook(torch.neg)

    def forward(self, value):
        return self.raw * value

    @torch.no_grad()
    def project(self):
        self.raw.clamp_(min=0.0)


def train(constrained, epochs=30, batch_size=256):
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(3)
    x, y, group = make_applicants(4096, gen)
    x_test, y_test, group_test = make_applicants(10000, gen)
    model, multiplier = Scorer(), Multiplier()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-3)
    opt_dual = torch.optim.SGD(multiplier.parameters(), lr=0.3)
    for epoch in range(epochs):
        model.train()
        loss_sum, gap_sum = 0.0, 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            logits = model(x[idx])
            loss = F.binary_cross_entropy_with_logits(logits, y[idx])
            gap = approval_gap(logits, group[idx])
            total = loss + multiplier(gap - GAP_LIMIT) if constrained else loss
            opt.zero_grad()
            opt_dual.zero_grad()
            total.backward()
            opt.step()
            if constrained:
                opt_dual.step()
                multiplier.project()
            loss_sum += loss.item() * len(idx)
            gap_sum += gap.item() * len(idx)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:2d}  loss {loss_sum / len(x):.4f}  gap {gap_sum / len(x):.4f}  "
                  f"multiplier {multiplier.raw.item():.3f}")
    model.eval()
    with torch.no_grad():
        logits = model(x_test)
        acc = ((logits > 0).float() == y_test).float().mean().item()
        gap = approval_gap(logits, group_test).item()
    print(f"constrained {constrained!s:5s}  test acc {acc:.4f}  approval gap {gap:.4f}")
    return model, multiplier, gap


if __name__ == "__main__":
    train(constrained=False)
    model, multiplier, gap = train(constrained=True)
