import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(9)


class TideModel(nn.Module):
    def __init__(self, stations=5, hidden=20):
        super().__init__()
        self.inp = nn.Linear(stations, hidden)
        self.core = nn.LSTM(hidden, hidden, num_layers=2, batch_first=True)
        self.out = nn.Linear(hidden, stations)

    def forward(self, x):
        h, _ = self.core(F.relu(self.inp(x)))
        return self.out(h)


def orthogonality(model):
    def gap(w):
        blocks = w.chunk(4, dim=0)
        eye = torch.eye(w.size(1))
        return sum((b @ b.T - eye).pow(2).mean() for b in blocks)

    recurrent = [p for name, p in model.named_parameters()
                 if name.rsplit(".", 1)[-1] == "weight_hh"]
    return sum(map(gap, recurrent), torch.zeros(()))


def levels(days=40, length=30, stations=5):
    t = torch.arange(length).float()
    start = torch.rand(days, 1, 1) * 20
    period = torch.linspace(6, 12, stations)
    clock = start + t[None, :, None]
    return torch.sin(6.28 * clock / period) + 0.1 * torch.randn(days, length, stations)


data = levels()
model = TideModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
strength = 0.5

for epoch in range(12):
    for batch in data[torch.randperm(len(data))].split(10):
        pred = model(batch[:, :-1])
        loss = F.mse_loss(pred, batch[:, 1:]) + strength * orthogonality(model)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1} objective {loss.item():.4f}")

with torch.no_grad():
    print("forecast error", F.mse_loss(model(data[:, :-1]), data[:, 1:]).item())
