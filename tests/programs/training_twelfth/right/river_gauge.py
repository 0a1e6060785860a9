"""Flood stage forecast at a river gauge with uncertainty: Monte Carlo dropout. At prediction time the batch norm uses
its running statistics while the dropout stays active; spread over the passes gives the model uncertainty."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(41)


def make_days(n, gen, shift=0.0):
    rain = torch.rand(n, 6, generator=gen) ** 3 * 60 + shift
    snow = torch.rand(n, 1, generator=gen) * 100
    temp = torch.randn(n, 1, generator=gen) * 6 + 5
    weights = torch.tensor([0.30, 0.25, 0.18, 0.12, 0.09, 0.06])
    melt = torch.minimum(F.relu(temp) * 1.5, snow)
    flow = (rain * weights).sum(1, keepdim=True) + 0.6 * melt
    stage = torch.log1p(flow) + 0.05 * torch.randn(n, 1, generator=gen)
    return torch.cat([rain, snow, temp], dim=1), stage


class StageNet(nn.Module):
    """Predicts the mean and the log variance of the stage."""

    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.BatchNorm1d(8),
            nn.Linear(8, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(width, 2),
        )

    def forward(self, x):
        mean, log_var = self.net(x).chunk(2, dim=1)
        return mean, log_var.clamp(-8, 4)


def sampling_mode(model):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()


@torch.no_grad()
def predict(model, x, passes=60):
    sampling_mode(model)
    means, noise = [], []
    for _ in range(passes):
        mean, log_var = model(x)
        means.append(mean)
        noise.append(log_var.exp())
    means = torch.stack(means)
    epistemic = means.var(0, unbiased=False)
    return means.mean(0), epistemic, torch.stack(noise).mean(0)


def main(epochs=50, batch_size=100):
    gen = torch.Generator().manual_seed(6)
    x, y = make_days(1500, gen)
    x_test, y_test = make_days(500, gen)
    x_far, y_far = make_days(500, gen, shift=50.0)
    model = StageNet()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(batch_size):
            mean, log_var = model(x[idx])
            # weighted likelihood: the weight is a constant, or the variance would shrink its own residuals
            weight = log_var.detach().exp().sqrt()
            nll = 0.5 * (log_var + (y[idx] - mean) ** 2 / log_var.exp())
            loss = (weight * nll).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}  loss {total / len(x):.4f}")

    for name, xs, ys in [("test", x_test, y_test), ("extreme rain", x_far, y_far)]:
        mean, epistemic, aleatoric = predict(model, xs)
        std = (epistemic + aleatoric).sqrt()
        covered = ((ys - mean).abs() < 1.96 * std).float().mean().item()
        rmse = (ys - mean).pow(2).mean().sqrt().item()
        print(f"{name:12s}  rmse {rmse:.4f}  model std {epistemic.sqrt().mean():.4f}  "
              f"noise std {aleatoric.sqrt().mean():.4f}  coverage {covered:.3f}")
    return model


if __name__ == "__main__":
    model = main()
