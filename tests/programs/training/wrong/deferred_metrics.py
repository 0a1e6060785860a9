"""Training loop whose metrics are computed at the end of the run."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MetricLog:
    def __init__(self):
        self.pending = []

    def defer(self, name, step, fn):
        self.pending.append((name, step, fn))

    def report(self, every):
        for name, step, fn in self.pending:
            if step % every == 0:
                print(f"step {step:3d} {name} {fn():.4f}")


class Regressor(nn.Module):
    def __init__(self, dim=64, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(dim, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def make_stream(dim, gen):
    w = torch.randn(dim, generator=gen) / dim**0.5
    while True:
        x = torch.randn(64, dim, generator=gen)
        yield x, torch.sin(x @ w) + 0.1 * torch.randn(64, generator=gen)


def main(steps=120):
    torch.manual_seed(151)
    gen = torch.Generator().manual_seed(152)
    model, log = Regressor(), MetricLog()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    stream = make_stream(64, gen)
    x_probe, y_probe = next(stream)
    for step in range(steps):
        x, y = next(stream)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        probe = model(x_probe)
        log.defer("train mse", step, lambda value=loss.item(): value)
        log.defer("probe mse", step, lambda pred=probe: F.mse_loss(pred, y_probe).item())
    log.report(every=40)
    return model, log


if __name__ == "__main__":
    main()
