import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(19)
SIZES = {"user": 80, "movie": 60}


class Taste(nn.Module):
    def __init__(self, sizes, dim=12):
        super().__init__()
        self.tables = nn.ModuleDict({k: nn.Embedding(n, dim) for k, n in sizes.items()})
        self.blend = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, batch):
        parts = [table(batch[key]) for key, table in self.tables.items()]
        return self.blend(torch.cat(parts, dim=1)).squeeze(1)


def shrinkage(net, strength):
    pulled = (
        p.square().mean()
        for name, p in net.named_parameters()
        if name.endswith("embedding.weight")
    )
    return strength * sum(pulled, start=torch.zeros(()))


class Fit:
    def __init__(self, net, strength):
        self.net, self.strength = net, strength
        self.opt = torch.optim.Adam(net.parameters(), lr=0.01)

    def batch(self, rows):
        error = F.mse_loss(self.net(rows), rows["stars"])
        loss = error + shrinkage(self.net, self.strength)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return error.item()

    @torch.no_grad()
    def evaluate(self, rows):
        return F.mse_loss(self.net(rows), rows["stars"]).item()


def ratings(n, tastes):
    rows = {k: torch.randint(s, (n,)) for k, s in SIZES.items()}
    match = (tastes["user"][rows["user"]] * tastes["movie"][rows["movie"]]).sum(1)
    return {**rows, "stars": match + 0.7 * torch.randn(n)}


tastes = {k: torch.randn(n, 3) * 0.7 for k, n in SIZES.items()}
train, test = ratings(900, tastes), ratings(300, tastes)
fit = Fit(Taste(SIZES), strength=0.5)
for epoch in range(12):
    errors = [fit.batch({k: v[i] for k, v in train.items()}) for i in torch.randperm(900).split(90)]
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} train {sum(errors) / len(errors):.4f} test {fit.evaluate(test):.4f}")
