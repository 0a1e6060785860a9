"""Loan approval on a table, with the demand that both districts are approved about equally often.

The demand is a constraint |gap| <= SLACK; it enters with a price, which rises while the constraint is violated.
"""
import torch
from torch import nn
import torch.nn.functional as F

SLACK = 0.02
EPOCHS = 15
BATCH = 256
PRICE_LR = 0.1
DAMPING = 4.0


def make_applicants(n, gen):
    district = torch.randint(0, 2, (n,), generator=gen)
    income = torch.randn(n, generator=gen) + 0.8 * district
    debt = torch.randn(n, generator=gen)
    other = torch.randn(n, 6, generator=gen)
    logit = 1.4 * income - 1.0 * debt + 0.5 * other[:, 0] * other[:, 1] - 0.3
    repaid = torch.bernoulli(torch.sigmoid(logit), generator=gen)
    return torch.cat([income[:, None], debt[:, None], other], dim=1), district, repaid


def approval_gap(prob, district):
    return prob[district == 1].mean() - prob[district == 0].mean()


class Approver(nn.Module):
    def __init__(self, n_in, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n_in + 1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 1))

    def forward(self, x, district):
        return self.net(torch.cat([x, district[:, None].float()], dim=1)).squeeze(1)


class ParityTrainer:
    def __init__(self, model):
        self.model = model
        self.price = nn.Parameter(torch.zeros(2))
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.price_optimizer = torch.optim.SGD([self.price], lr=PRICE_LR, maximize=True)

    def step(self, x, district, repaid):
        logit = self.model(x, district)
        fit = F.binary_cross_entropy_with_logits(logit, repaid)
        gap = approval_gap(torch.sigmoid(logit), district)
        excess = torch.stack([gap - SLACK, -gap - SLACK])
        # augmented Lagrangian: the square keeps price and gap from chasing each other
        lagrangian = fit + (self.price * excess).sum() + DAMPING * F.relu(excess).square().sum()

        self.optimizer.zero_grad()
        self.price_optimizer.zero_grad()
        lagrangian.backward()
        self.optimizer.step()
        self.price_optimizer.step()
        with torch.no_grad():
            self.price.clamp_(min=0.0)
        return fit.item(), gap.item()


@torch.no_grad()
def report(model, x, district, repaid):
    prob = torch.sigmoid(model(x, district))
    accuracy = ((prob > 0.5) == repaid.bool()).float().mean().item()
    return accuracy, approval_gap(prob, district).item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    gen = torch.Generator().manual_seed(4)
    train = make_applicants(4000, gen)
    held = make_applicants(1500, gen)
    base = held[2][held[1] == 1].mean() - held[2][held[1] == 0].mean()
    print(f"gap of the repayment rates in the data: {base:.3f}")
    trainer = ParityTrainer(Approver(8))
    for epoch in range(EPOCHS):
        fits = []
        for idx in torch.randperm(len(train[0])).split(BATCH):
            fit, gap = trainer.step(*(part[idx] for part in train))
            fits.append(fit)
        accuracy, gap = report(trainer.model, *held)
        prices = ", ".join(f"{p:.3f}" for p in trainer.price.tolist())
        print(f"epoch {epoch + 1:2d}: fit {sum(fits) / len(fits):.4f}  held-out accuracy {accuracy:.3f}  "
              f"gap {gap:+.3f}  prices {prices}")
    return trainer, held, accuracy, gap


if __name__ == "__main__":
    trainer, held, accuracy, gap = main()
