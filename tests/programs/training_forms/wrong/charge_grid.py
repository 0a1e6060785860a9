import torch
from torch import nn

torch.manual_seed(83)
CELLS = 16


def deposit(place, amount):
    left = place.floor().long().clamp(0, CELLS - 2)
    part = place - left
    total = torch.zeros(CELLS)
    for cell, share in ((left, amount * (1 - part)), (left + 1, amount * part)):
        total.index_put_((cell,), total[cell] + share)
    return total


class ChargeModel(nn.Module):
    def __init__(self, traits=5, width=24):
        super().__init__()
        self.charge = nn.Sequential(nn.Linear(traits, width), nn.Softplus(), nn.Linear(width, 1))

    def forward(self, place, traits):
        amounts = self.charge(traits).squeeze(-1)
        return torch.stack([deposit(p, a) for p, a in zip(place, amounts)])


def snapshots(n, particles=48):
    place = torch.rand(n, particles) * (CELLS - 1)
    traits = torch.randn(n, particles, 5)
    true = torch.tanh(traits[..., 0]) + 0.5 * traits[..., 1] * traits[..., 2]
    tent = (1 - (place[..., None] - torch.arange(CELLS)).abs()).clamp(min=0)
    return place, traits, torch.einsum("sp,spc->sc", true, tent), true


place, traits, measured, true = snapshots(40)
model = ChargeModel()
opt = torch.optim.Adam(model.parameters(), lr=1.5e-2)
for epoch in range(12):
    total = 0.0
    for pick in torch.randperm(40).split(8):
        loss = (model(place[pick], traits[pick]) - measured[pick]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 5
    if epoch % 4 == 3:
        with torch.no_grad():
            error = (model.charge(traits).squeeze(-1) - true).square().mean().item()
        print(f"epoch {epoch} field loss {total:.4f} charge error {error:.4f}")
