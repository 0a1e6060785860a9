import torch
from torch import nn


class MarketShare(nn.Module):
    def __init__(self, regions, brands, drivers):
        super().__init__()
        self.share = nn.Parameter(torch.full((regions, brands), 1.0 / brands))
        self.effect = nn.Parameter(torch.rand(brands, drivers))
        self.offset = nn.Parameter(torch.zeros(drivers))

    def forward(self, region):
        return self.share[region] @ self.effect + self.offset


def onto_simplex(rows):
    ordered = rows.sort(dim=-1, descending=True).values
    k = torch.arange(1, rows.shape[-1] + 1)
    slack = (ordered.cumsum(-1) - 1) / k
    rho = (ordered > slack).sum(-1, keepdim=True)
    return (rows - slack.gather(-1, rho - 1)).clamp(min=0)


class Projected:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)

    def project(self):
        self.model.share.data = onto_simplex(self.model.share.data)
        self.model.effect.data = self.model.effect.data.clamp(min=0)

    def step(self, loss):
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.project()


def observe(n, g):
    share = torch.softmax(2 * torch.randn(12, 4, generator=g), -1)
    effect = 3 * torch.rand(4, 6, generator=g)
    region = torch.randint(0, 12, (n,), generator=g)
    return region, share[region] @ effect + 0.05 * torch.randn(n, 6, generator=g)


def fit(model, region, target, epochs=8):
    worker = Projected(model, lr=0.1)
    for epoch in range(epochs):
        total = 0.0
        for r, t in zip(region.split(40), target.split(40)):
            loss = (model(r) - t).pow(2).sum(-1).mean()
            worker.step(loss)
            total += loss.item()
        sums = model.share.detach().sum(-1)
        print(f"epoch {epoch} loss {total / 10:.4f} row sums {sums.min():.4f} {sums.max():.4f}")
    return worker


if __name__ == "__main__":
    torch.manual_seed(0)
    region, target = observe(400, torch.Generator().manual_seed(3))
    model = MarketShare(12, 4, 6)
    worker = fit(model, region, target)
