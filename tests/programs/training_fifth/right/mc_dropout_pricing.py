"""House prices with Monte-Carlo dropout: dropout stays on at test time to get an uncertainty."""
import torch
import torch.nn as nn

torch.set_num_threads(1)
torch.manual_seed(5)


class PriceNet(nn.Module):
    def __init__(self, features, width=64, p=0.1):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(p),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(p),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(-1)


def sampling_mode(model):
    """Everything in evaluation mode except the dropout layers."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()


@torch.no_grad()
def mc_predict(model, x, samples=40):
    sampling_mode(model)
    draws = torch.stack([model(x) for _ in range(samples)])
    return draws.mean(0), draws.std(0)


def houses(n, spread=1.0):
    x = spread * torch.randn(n, 6)
    price = 2 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2] * x[:, 3] + 0.1 * torch.randn(n)
    return x, price


x, y = houses(1200)
x_test, y_test = houses(300)
x_far, _ = houses(300, spread=4.0)

model = PriceNet(6)
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=6, gamma=0.3)
for epoch in range(15):
    model.train()
    for idx in torch.randperm(len(x)).split(64):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    if epoch % 5 == 4:
        mean, std = mc_predict(model, x_test)
        print(f"epoch {epoch + 1}: test rmse {(mean - y_test).pow(2).mean().sqrt():.3f}  mean std {std.mean():.3f}")

model.eval()
with torch.no_grad():
    point = model(x_test)
mean, std = mc_predict(model, x_test)
_, std_far = mc_predict(model, x_far)
print(f"deterministic rmse {(point - y_test).pow(2).mean().sqrt():.3f}")
print(f"mc rmse            {(mean - y_test).pow(2).mean().sqrt():.3f}")
print(f"uncertainty: near {std.mean():.3f}, far {std_far.mean():.3f}")
