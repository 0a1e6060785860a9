import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(29)


class PowerCurve(nn.Module):
    def __init__(self, inputs=3, width=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.heads = nn.ModuleDict({"centre": nn.Linear(width, 1), "scale": nn.Linear(width, 1)})

    def forward(self, weather):
        h = self.body(weather)
        out = {name: head(h).squeeze(-1) for name, head in self.heads.items()}
        out["scale"] = F.softplus(out["scale"]) + 1e-3
        return out


class Fitter:
    def __init__(self, model):
        self.model = model
        self.criterion = nn.GaussianNLLLoss()
        self.opt = torch.optim.Adam(model.parameters(), lr=6e-3)

    def fit_batch(self, weather, power):
        out = self.model(weather)
        loss = self.criterion(out["centre"], power, out["scale"])
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    @torch.no_grad()
    def coverage(self, weather, power):
        out = self.model(weather)
        ahead = torch.distributions.Normal(out["centre"], out["scale"])
        level = ahead.cdf(power)
        return ((level > 0.1) & (level < 0.9)).float().mean().item(), out["scale"].mean().item()


weather = torch.rand(1000, 3)
noise = 0.03 + 0.25 * weather[:, 1]
power = torch.sigmoid(8 * (weather[:, 0] - 0.5)) + noise * torch.randn(1000)

fitter = Fitter(PowerCurve())
for epoch in range(10):
    for w, p in zip(weather.split(100), power.split(100)):
        loss = fitter.fit_batch(w, p)
    if epoch % 3 == 0:
        share, scale = fitter.coverage(weather, power)
        print(f"epoch {epoch} nll {loss:.4f} share inside the 80% band {share:.3f} mean scale {scale:.3f}")
