import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset


def turbine(n):
    speed = 12 * torch.rand(n)
    angle = 2 * torch.pi * torch.rand(n)
    temp = torch.randn(n)
    feats = torch.stack([speed / 6 - 1, angle.sin(), angle.cos(), temp], 1)
    power = torch.sigmoid(speed - 6) * (1 + 0.4 * angle.cos()) - 0.05 * temp
    return feats, (power + 0.05 * torch.randn(n)).unsqueeze(1)


class Meter:
    def __init__(self):
        self.err, self.tot = 0.0, 0.0

    def update(self, pred, target):
        self.err += (pred - target).square().sum().item()
        self.tot += (target - target.mean()).square().sum().item()

    def report(self):
        return {"r2": 1 - self.err / self.tot, "sse": self.err}


def evaluate(net, data):
    meter = Meter()
    net.eval()
    with torch.inference_mode():
        for x, y in data:
            meter.update(net(x), y)
    net.train()
    return meter.report()


def fit(net, train, valid, epochs):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    control = ReduceLROnPlateau(opt, mode="max", factor=0.3, patience=2)
    for epoch in range(epochs):
        for x, y in train:
            loss = nn.functional.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        metrics = evaluate(net, valid)
        control.step(metrics["r2"])
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} r2 {metrics['r2']:.4f} lr {opt.param_groups[0]['lr']:.2e}")


if __name__ == "__main__":
    torch.manual_seed(20)
    train = DataLoader(TensorDataset(*turbine(640)), batch_size=64, shuffle=True)
    valid = DataLoader(TensorDataset(*turbine(256)), batch_size=128)
    net = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
    fit(net, train, valid, 16)
