"""Cox proportional hazards by gradient descent: treatment effect in a two-arm trial with drop-out."""
import math

import torch
import torch.nn as nn

NAMES = ["treated", "age", "stage", "marker"]
TRUE_BETA = torch.tensor([-0.8, 0.5, 0.7, 0.0])


def enroll(n, gen):
    """Exponential event times; treated and high-marker patients leave the study earlier."""
    treated = (torch.rand(n, generator=gen) < 0.5).float()
    age, stage, marker = torch.randn(3, n, generator=gen)
    x = torch.stack([treated, age, stage, marker], dim=1)
    death = -torch.log(torch.rand(n, generator=gen)) / (0.12 * torch.exp(x @ TRUE_BETA))
    dropout_rate = 0.06 * torch.exp(0.6 * treated - 0.3 * age + 0.5 * marker)
    dropout = -torch.log(torch.rand(n, generator=gen)) / dropout_rate
    followup = torch.minimum(torch.minimum(death, dropout), torch.full((n,), 24.0))
    event = (death <= dropout) & (death <= 24.0)
    return x, followup, event


class CoxModel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 1, bias=False)
        nn.init.zeros_(self.linear.weight)

    def forward(self, x):
        return self.linear(x).squeeze(-1)


def partial_likelihood(score, followup, event):
    """Negative log partial likelihood (Breslow). The risk set of a patient is everyone followed at least as long."""
    order = torch.argsort(followup, descending=True)
    score = score[order]
    log_risk = torch.logcumsumexp(score, dim=0)
    return -(score - log_risk)[event].sum() / event.sum()


def concordance(score, followup, event):
    earlier = (followup[:, None] < followup[None, :]) & event[:, None]
    agree = (score[:, None] > score[None, :]).float() + 0.5 * (score[:, None] == score[None, :]).float()
    return (agree * earlier).sum().item() / earlier.sum().item()


def fit(model, x, followup, event, epochs=40, batch=256, lr=0.05):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=epochs)
    for epoch in range(epochs):
        running = 0.0
        shuffled = torch.randperm(len(x)).split(batch)
        for idx in shuffled:
            loss = partial_likelihood(model(x[idx]), followup[idx], event[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        sched.step()
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1:3d}  -log PL {running / len(shuffled):.4f}")
    return model


def main():
    torch.manual_seed(19)
    gen = torch.Generator().manual_seed(19)
    x, followup, event = enroll(4096, gen)
    test = enroll(1024, gen)
    print(f"{len(x)} patients, {event.float().mean():.0%} events, median follow-up {followup.median():.1f} months")

    model = fit(CoxModel(x.shape[1]), x, followup, event)
    with torch.no_grad():
        c_index = concordance(model(test[0]), test[1], test[2])
        beta = model.linear.weight[0].clone()
    print(f"held-out concordance {c_index:.3f}")
    for name, b in zip(NAMES, beta.tolist()):
        print(f"  {name:8s} log HR {b:+.2f}   HR {math.exp(b):.2f}")
    return beta, c_index


if __name__ == "__main__":
    main()
