"""River level forecast with SGD + gradient centralization (Yong et al. 2020) and a step schedule."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(23)


class CentralizedSGD(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9):
        super().__init__(params, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                if group.get("centralize") and g.dim() > 1:
                    g = g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True)
                buf = self.state[p].get("buf")
                if buf is None:
                    buf = self.state[p]["buf"] = g.clone()
                else:
                    buf.mul_(group["momentum"]).add_(g)
                p.sub_(buf, alpha=group["lr"])


class LevelGRU(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(2, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1]).squeeze(1)


def simulate(steps):
    rain = torch.relu(torch.randn(steps) - 0.8)
    level = torch.zeros(steps)
    for t in range(1, steps):
        level[t] = 0.85 * level[t - 1] + 0.6 * rain[t - 1]
    return torch.stack([rain, level + 0.02 * torch.randn(steps)], dim=1)


def windows(series, length=16):
    block = series.unfold(0, length + 1, 1).transpose(1, 2)
    return block[:, :length], block[:, length, 1]


x, y = windows(simulate(1200))
x_test, y_test = windows(simulate(400))
model = LevelGRU()
optimizer = CentralizedSGD(
    [{"params": model.rnn.parameters(), "centralize": True},
     {"params": model.out.parameters(), "lr": 0.02}],
    lr=0.05,
)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[5, 7], gamma=0.2)

for epoch in range(8):
    total = 0.0
    for idx in torch.randperm(len(x)).split(32):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        model.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(idx)
    scheduler.step()
    print(f"epoch {epoch}  lr {[g['lr'] for g in optimizer.param_groups]}  mse {total / len(x):.4f}")

with torch.no_grad():
    test_mse = nn.functional.mse_loss(model(x_test), y_test).item()
print(f"test mse {test_mse:.4f}, variance of the target {y_test.var().item():.4f}")
