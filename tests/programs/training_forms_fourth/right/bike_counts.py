import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(11)


def make_rentals(n=1200):
    hour = torch.rand(n, 1) * 24
    temp = torch.randn(n, 1)
    rain = (torch.rand(n, 1) < 0.3).float()
    rate = torch.exp(0.8 + 0.5 * torch.sin(hour / 24 * 6.283) + 0.3 * temp - 0.7 * rain)
    feats = torch.cat([torch.sin(hour / 24 * 6.283), torch.cos(hour / 24 * 6.283), temp, rain], dim=1)
    return feats, torch.poisson(rate).squeeze(1)


class DemandNet(nn.Module):
    def __init__(self, in_features, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(in_features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return F.softplus(self.out(x)).squeeze(-1)


features, counts = make_rentals()
train_set, val_set = random_split(TensorDataset(features, counts), [1000, 200])
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_x, val_y = features[val_set.indices], counts[val_set.indices]

model = DemandNet(features.shape[1])
criterion = nn.PoissonNLLLoss(log_input=False)
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)

for epoch in range(12):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        rate = model(x)
        loss = criterion(rate, y)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(x)
    model.eval()
    with torch.no_grad():
        pred = model(val_x)
        mae = (pred - val_y).abs().mean()
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: train loss {running / len(train_set):.4f}  val MAE {mae:.3f}  "
              f"mean forecast {pred.mean():.2f} vs actual {val_y.mean():.2f}")
