"""One model for several sites of unequal size, one step over all sites."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(22)


def site(n, shift, weight):
    x = torch.randn(n, 8) + shift
    return x, (x @ weight + 0.1 * torch.randn(n)).unsqueeze(1)


weight = torch.randn(8)
sites = [site(n, s, weight) for n, s in ((30, -0.5), (120, 0.0), (60, 0.5))]
holdout = site(100, 0.2, weight)
n_total = sum(len(x) for x, _ in sites)

model = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(model.parameters(), lr=2e-2)

for step in range(100):
    opt.zero_grad()
    total = 0.0
    for x, y in sites:
        loss = F.mse_loss(model(x), y) * (len(x) / n_total)
        loss.backward()
        total += loss.item()
    opt.step()
    if step % 25 == 24:
        with torch.no_grad():
            test = F.mse_loss(model(holdout[0]), holdout[1]).item()
        print(f"step {step}: train {total:.4f} holdout {test:.4f}")
