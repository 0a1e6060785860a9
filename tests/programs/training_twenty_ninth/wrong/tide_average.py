"""Tide residual regression at a constant step size, with stochastic weight averaging over the last epochs."""
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_tides(count, seed):
    g = torch.Generator().manual_seed(seed)
    phase = torch.rand(count, 4, generator=g) * 2 * math.pi
    wind = torch.randn(count, 2, generator=g)
    level = phase[:, 0].sin() + 0.5 * (phase[:, 1] - phase[:, 2]).cos() + 0.4 * wind[:, 0] * wind[:, 1]
    x = torch.cat([phase.sin(), phase.cos(), wind], dim=1)
    return x, level + 0.6 * torch.randn(count, generator=g)


class TideNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.inp = nn.Linear(10, width)
        self.mid = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.tanh(self.inp(x))
        h = h + torch.tanh(self.mid(self.norm(h)))
        return self.out(h).squeeze(-1)


class Callback:
    def on_epoch_end(self, trainer, epoch):
        pass

    def on_fit_end(self, trainer):
        pass


class WeightAverage(Callback):
    """Running mean of the weights at the end of every epoch from `first` on, kept in host memory."""

    def __init__(self, first):
        self.first = first
        self.count = 0
        self.mean = None

    @torch.no_grad()
    def on_epoch_end(self, trainer, epoch):
        if epoch < self.first:
            return
        current = {k: v.detach().cpu() for k, v in trainer.model.state_dict().items()}
        self.count += 1
        if self.mean is None:
            self.mean = current
            return
        for key, value in current.items():
            self.mean[key].lerp_(value, 1.0 / self.count)

    def on_fit_end(self, trainer):
        print(f"averaged {self.count} sets of weights")


class EpochLog(Callback):
    def __init__(self, every):
        self.every = every

    def on_epoch_end(self, trainer, epoch):
        if epoch % self.every == 0:
            print(f"epoch {epoch:2d}  train loss {trainer.last_loss:.4f}")


class Trainer:
    def __init__(self, model, lr, callbacks):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.callbacks = callbacks
        self.last_loss = float("nan")

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            self.last_loss = total / len(loader)
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch)
        for callback in self.callbacks:
            callback.on_fit_end(self)


@torch.no_grad()
def test_loss(state, data):
    model = TideNet()
    model.load_state_dict(state)
    model.eval()
    return nn.functional.mse_loss(model(data[0]), data[1]).item()


def main():
    torch.manual_seed(8)
    loader = DataLoader(TensorDataset(*make_tides(512, seed=1)), batch_size=16, shuffle=True)
    test = make_tides(600, seed=2)
    averager = WeightAverage(first=6)
    trainer = Trainer(TideNet(), lr=0.05, callbacks=[averager, EpochLog(every=4)])
    trainer.fit(loader, epochs=18)
    averaged = test_loss(averager.mean, test)
    print(f"test loss of the averaged weights {averaged:.4f}")
    return trainer, averager, test, averaged


if __name__ == "__main__":
    trainer, averager, test, averaged = main()
