"""Day-ahead electricity prices: a small network with a cosine learning-rate schedule."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)

EPOCHS = 12
BATCH = 16
HISTORY = 24


def prices(days):
    hours = torch.arange(24 * days, dtype=torch.float32)
    daily = torch.sin(2 * torch.pi * hours / 24) + 0.5 * torch.sin(4 * torch.pi * hours / 24 + 1)
    weekly = 0.4 * torch.cos(2 * torch.pi * hours / 168)
    noise = torch.zeros_like(hours)
    for i in range(1, len(hours)):
        noise[i] = 0.8 * noise[i - 1] + 0.25 * torch.randn(())
    return daily + weekly + noise


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(HISTORY, 48), nn.ReLU(), nn.Linear(48, 24))

    def forward(self, past):
        return past + self.net(past)


series = prices(110)
windows = series.unfold(0, HISTORY + 24, 6)
split = 320
train, test = windows[:split], windows[split + 8:]

model = Forecaster()
optimizer = torch.optim.SGD(model.parameters(), lr=0.12, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)

lrs, history = [], []
for epoch in range(EPOCHS):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(train)).split(BATCH):
        past, future = train[idx, :HISTORY], train[idx, HISTORY:]
        loss = F.mse_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        lrs.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
        running += loss.item() * len(idx)
    model.eval()
    with torch.no_grad():
        test_loss = F.mse_loss(model(test[:, :HISTORY]), test[:, HISTORY:]).item()
    history.append(test_loss)
    print(f"epoch {epoch:2d} train {running / len(train):.4f} test {test_loss:.4f}")

with torch.no_grad():
    train_loss = F.mse_loss(model(train[:, :HISTORY]), train[:, HISTORY:]).item()
naive = F.mse_loss(test[:, :HISTORY], test[:, HISTORY:]).item()
print(f"final test mse {history[-1]:.4f}, same-as-yesterday {naive:.4f}")
