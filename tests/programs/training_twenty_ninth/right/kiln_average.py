"""Kiln temperature model with batch norm, trained with stochastic weight averaging and evaluated on the average."""
from contextlib import contextmanager

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_firings(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 8, generator=g) * torch.tensor([1.0, 3.0, 0.5, 1.0, 2.0, 1.0, 1.0, 1.0]) + 1.5
    y = torch.sin(x[:, 0] + x[:, 1] / 3) + 0.3 * x[:, 2] * x[:, 3]
    return x, y + 0.4 * torch.randn(count, generator=g)


def build_model(width=40):
    return nn.Sequential(
        nn.Linear(8, width, bias=False),
        nn.BatchNorm1d(width),
        nn.SiLU(),
        nn.Linear(width, width, bias=False),
        nn.BatchNorm1d(width),
        nn.SiLU(),
        nn.Linear(width, 1),
    )


class Callback:
    def on_epoch_end(self, trainer, epoch):
        pass


class WeightAverage(Callback):
    """Running mean of the parameters from epoch `first` on."""

    def __init__(self, first):
        self.first = first
        self.count = 0
        self.mean = []

    @torch.no_grad()
    def on_epoch_end(self, trainer, epoch):
        if epoch < self.first:
            return
        self.count += 1
        if self.count == 1:
            self.mean = [p.detach().clone() for p in trainer.model.parameters()]
            return
        for mean, p in zip(self.mean, trainer.model.parameters()):
            mean.lerp_(p, 1.0 / self.count)

    @contextmanager
    def applied(self, trainer):
        """The model with averaged weights and matching batch statistics; afterwards everything is as before."""
        model = trainer.model
        params = list(model.parameters())
        kept = [p.data for p in params]
        buffers = {name: b.clone() for name, b in model.named_buffers()}
        for p, mean in zip(params, self.mean):
            p.data = mean
        refresh_statistics(model, trainer.loader)
        try:
            yield model
        finally:
            for p, data in zip(params, kept):
                p.data = data
            for name, b in model.named_buffers():
                b.copy_(buffers[name])


@torch.no_grad()
def refresh_statistics(model, loader):
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm1d)]
    momenta = [m.momentum for m in norms]
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    model.train()
    for x, _ in loader:
        model(x)
    for m, momentum in zip(norms, momenta):
        m.momentum = momentum


class Trainer:
    def __init__(self, model, loader, lr, callbacks):
        self.model = model
        self.loader = loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.callbacks = callbacks

    def fit(self, epochs, val, averager):
        for epoch in range(epochs):
            self.model.train()
            total = torch.zeros(())
            for x, y in self.loader:
                loss = nn.functional.mse_loss(self.model(x).squeeze(-1), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.detach()
            for callback in self.callbacks:
                callback.on_epoch_end(self, epoch)
            line = f"epoch {epoch:2d}  train {total.item() / len(self.loader):.4f}  val {self.evaluate(val):.4f}"
            if averager.count:
                with averager.applied(self):
                    line += f"  averaged {self.evaluate(val):.4f}"
            print(line)

    @torch.no_grad()
    def evaluate(self, data):
        self.model.eval()
        return nn.functional.mse_loss(self.model(data[0]).squeeze(-1), data[1]).item()


def main():
    torch.manual_seed(4)
    loader = DataLoader(TensorDataset(*make_firings(512, seed=1)), batch_size=32, shuffle=True)
    val = make_firings(400, seed=2)
    averager = WeightAverage(first=5)
    trainer = Trainer(build_model(), loader, lr=0.1, callbacks=[averager])
    trainer.fit(14, val, averager)
    return trainer, averager, val


if __name__ == "__main__":
    trainer, averager, val = main()
