"""Two regression tasks on very different scales with a shared trunk; the losses are balanced by learned
homoscedastic uncertainties, one log-variance per task."""
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)


def make_data(n):
    x = torch.randn(n, 10)
    large = 30.0 * torch.sin(x[:, 0] * x[:, 1]) + 20.0 * torch.randn(n)
    small = 0.1 * (torch.cos(x[:, 2] + x[:, 3]) + 0.1 * torch.randn(n))
    return x, torch.stack([large, small], 1)


class SharedNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(width, 1) for _ in range(2)])

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads], 1)


class UncertaintyLoss(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, prediction, target):
        errors = (prediction - target).pow(2).mean(0)
        return (0.5 * torch.exp(-self.log_var) * errors + 0.5 * self.log_var).sum()


class PrintCallback:
    def __init__(self, every):
        self.every = every

    def on_epoch_end(self, epoch, loss):
        if (epoch + 1) % self.every == 0:
            print(f"epoch {epoch + 1:2d}  loss {loss:.3f}")


class Trainer:
    def __init__(self, model, criterion, lr=5e-3, callbacks=()):
        self.model, self.criterion, self.callbacks = model, criterion, callbacks
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def fit(self, x, y, epochs=25, batch=64):
        for epoch in range(epochs):
            total = 0.0
            for index in torch.randperm(len(x)).split(batch):
                loss = self.criterion(self.model(x[index]), y[index])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(index)
            for callback in self.callbacks:
                callback.on_epoch_end(epoch, total / len(x))


def main():
    x, y = make_data(1500)
    test_x, test_y = make_data(1000)
    model, criterion = SharedNet(), UncertaintyLoss(2)
    trainer = Trainer(model, criterion, callbacks=[PrintCallback(every=5)])
    trainer.fit(x, y)
    with torch.no_grad():
        errors = (model(test_x) - test_y).pow(2).mean(0)
        explained = 1 - errors / test_y.var(0)
        weights = torch.exp(-criterion.log_var)
    print("task weights:", [round(w, 4) for w in weights.tolist()])
    print("explained variance on test data:", [round(v, 3) for v in explained.tolist()])


if __name__ == "__main__":
    main()
