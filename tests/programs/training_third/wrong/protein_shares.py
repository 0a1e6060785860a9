import torch
from torch import nn
import torch.nn.functional as F


class ResidueNet(nn.Module):
    def __init__(self, inputs=20, width=32):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(inputs, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.fold = nn.Linear(width, 3)
        self.exposure = nn.Linear(width, 1)
        self.charge = nn.Linear(width, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.fold(h), self.exposure(h).squeeze(-1), self.charge(h).squeeze(-1)


class ShareLog:
    def __init__(self, module, every):
        self.module, self.every, self.rows = module, every, []

    def due(self, step):
        return step % self.every == 0

    def measure(self, losses):
        row = {}
        for name, value in losses.items():
            self.module.zero_grad()
            value.backward(retain_graph=True)
            row[name] = sum(p.grad.pow(2).sum().item() for p in self.module.trunk.parameters()) ** 0.5
        total = sum(row.values())
        self.rows.append({k: v / total for k, v in row.items()})


def residues(n, g):
    x = torch.randn(n, 20, generator=g)
    fold = (x[:, :3] + 0.3 * torch.randn(n, 3, generator=g)).argmax(-1)
    return x, fold, x[:, 3] * x[:, 4], torch.tanh(x[:, 5] + x[:, 6])


def losses_of(model, batch):
    x, fold, exposure, charge = batch
    a, b, c = model(x)
    return {"fold": F.cross_entropy(a, fold), "exposure": F.mse_loss(b, exposure), "charge": F.mse_loss(c, charge)}


def train(model, data, weights, epochs=5, batch=40, every=2):
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    log = ShareLog(model, every)
    step = 0
    for epoch in range(epochs):
        for rows in torch.arange(len(data[0])).split(batch):
            losses = losses_of(model, [t[rows] for t in data])
            total = sum(weights[k] * v for k, v in losses.items())
            opt.zero_grad()
            total.backward(retain_graph=log.due(step))
            if log.due(step):
                log.measure(losses)
            opt.step()
            step += 1
        print(f"epoch {epoch}", {k: round(v.item(), 4) for k, v in losses.items()})
    return log


if __name__ == "__main__":
    torch.manual_seed(0)
    model = ResidueNet()
    data = residues(400, torch.Generator().manual_seed(4))
    log = train(model, data, {"fold": 1.0, "exposure": 0.5, "charge": 0.5})
    print({k: round(v, 3) for k, v in log.rows[-1].items()})
