import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(21)

DECAY = 0.98


def build(features):
    return nn.Sequential(
        nn.Linear(features, 64), nn.SiLU(),
        nn.Linear(64, 64), nn.SiLU(),
        nn.Linear(64, 1))


def house_prices(rows=800, features=10):
    x = torch.randn(rows, features)
    w = torch.randn(features)
    y = (x @ w) + 0.8 * torch.sin(2 * x[:, 0]) * x[:, 1] + 0.5 * torch.randn(rows)
    return x, (y - y.mean()) / y.std()


x, y = house_prices()
fit, held = slice(0, 600), slice(600, None)
model = build(x.size(1))
smooth = AveragedModel(model, avg_fn=lambda avg, cur, seen: (1 - DECAY) * avg + DECAY * cur)
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9)
criterion = nn.MSELoss()


def evaluate(net):
    net.eval()
    with torch.no_grad():
        return criterion(net(x[held]).squeeze(1), y[held]).item()


for epoch in range(15):
    model.train()
    for rows in torch.randperm(600).split(32):
        loss = criterion(model(x[fit][rows]).squeeze(1), y[fit][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        smooth.update_parameters(model)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1:2d} train {loss.item():.4f} "
              f"held-out {evaluate(model):.4f} smoothed {evaluate(smooth):.4f}")
