import torch
from torch import nn
from torch.distributions import Poisson

torch.manual_seed(97)


def policies(n):
    age = torch.rand(n) * 60 + 18
    power = torch.rand(n) * 150 + 40
    region = torch.randint(0, 6, (n,))
    hazard = torch.tensor([0.2, -0.3, 0.6, 0.0, -0.5, 0.4])[region]
    rate = torch.exp(0.3 + hazard + 0.012 * (48 - age) + 0.006 * (power - 115))
    columns = {"age": (age - 48) / 17, "power": (power - 115) / 43, "region": region}
    return columns, torch.poisson(rate)


class ClaimRate(nn.Module):
    def __init__(self, regions=6, width=12):
        super().__init__()
        self.region = nn.Embedding(regions, 3)
        self.mix = nn.Sequential(nn.Linear(5, width), nn.SELU(), nn.Linear(width, 1), nn.Softplus())

    def forward(self, age, power, region):
        whole = torch.cat([age[:, None], power[:, None], self.region(region)], dim=1)
        return Poisson(self.mix(whole).squeeze(1) + 1e-4)


def fit(model, columns, counts, epochs, size):
    optimizer = torch.optim.Rprop(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        rows = torch.randperm(len(counts))[:size]
        optimizer.zero_grad()
        claims = model(**{name: column[rows] for name, column in columns.items()})
        loss = claims.log_prob(counts[rows]).mean().neg()
        loss.backward()
        optimizer.step()
        if epoch % 20 == 19:
            print(f"epoch {epoch + 1}  negative log-likelihood {loss.item():.4f}")


def lift(model, columns, counts):
    with torch.no_grad():
        order = model(**columns).rate.flatten().argsort(descending=True)
    tenth = len(counts) // 10
    return (counts[order[:tenth]].mean() / counts.mean()).item()


columns, counts = policies(900)
model = ClaimRate()
fit(model, columns, counts, epochs=80, size=600)
with torch.no_grad():
    rates = model(**columns).rate
print(f"rates from {rates.min().item():.3f} to {rates.max().item():.3f}")
print(f"claims in the top tenth against the mean: {lift(model, *policies(900)):.3f}")
