"""Estimate soil moisture from reflectance bands; micro-batches are accumulated, callbacks log diagnostics."""
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, parameters_to_vector


def make_plots(count, bands, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.rand(count, bands, generator=g) * 2 - 1
    index = (x[:, 3] - x[:, 2]) / (x[:, 3].abs() + x[:, 2].abs() + 0.5)
    y = index + 0.3 * x[:, 5] ** 2 + 0.25 * torch.randn(count, generator=g)
    return x, y


class MoistureNet(nn.Module):
    def __init__(self, bands, hidden=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(bands, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, hidden), nn.GELU())
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


class Callback:
    def on_train_begin(self, trainer):
        pass

    def on_epoch_end(self, trainer, logs):
        pass


class SlopeLog(Callback):
    """Logs how steep the validation loss still is at the current weights."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.slopes = []

    def on_epoch_end(self, trainer, logs):
        model = trainer.model
        model.eval()
        loss = trainer.loss_fn(model(self.x), self.y)
        loss.backward()
        slope = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        self.slopes.append(slope.item())
        logs["val"] = loss.item()
        logs["slope"] = slope.item()
        model.train()


class EarlyStopping(Callback):
    def __init__(self, patience):
        self.patience = patience
        self.best, self.bad = float("inf"), 0

    def on_epoch_end(self, trainer, logs):
        if logs["val"] < self.best - 1e-4:
            self.best, self.bad = logs["val"], 0
        else:
            self.bad += 1
        trainer.stop = self.bad >= self.patience


class Printer(Callback):
    def on_epoch_end(self, trainer, logs):
        if logs["epoch"] % 5 == 0:
            print("  ".join(f"{k} {v:.4f}" if isinstance(v, float) else f"{k} {v}" for k, v in logs.items()))


class Trainer:
    def __init__(self, model, lr, accumulate, max_norm, callbacks):
        self.model = model
        self.loss_fn = nn.MSELoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.accumulate = accumulate
        self.max_norm = max_norm
        self.callbacks = callbacks
        self.stop = False

    def fit(self, x, y, micro, epochs):
        for callback in self.callbacks:
            callback.on_train_begin(self)
        self.model.train()
        for epoch in range(epochs):
            batches = torch.randperm(len(x)).split(micro)
            assert len(batches) % self.accumulate == 0
            running = 0.0
            for i, idx in enumerate(batches, start=1):
                loss = self.loss_fn(self.model(x[idx]), y[idx])
                (loss / self.accumulate).backward()
                running += loss.item()
                if i % self.accumulate == 0:
                    clip_grad_norm_(self.model.parameters(), self.max_norm)
                    self.optimizer.step()
                    self.optimizer.zero_grad()
            logs = {"epoch": epoch, "train": running / len(batches)}
            for callback in self.callbacks:
                callback.on_epoch_end(self, logs)
            if self.stop:
                break
        return logs


def main():
    torch.manual_seed(21)
    bands = 10
    x, y = make_plots(64, bands, seed=1)
    x_val, y_val = make_plots(48, bands, seed=2)
    model = MoistureNet(bands)
    start = parameters_to_vector(model.parameters()).detach().clone()
    callbacks = [SlopeLog(x_val, y_val), EarlyStopping(patience=25), Printer()]
    trainer = Trainer(model, lr=0.3, accumulate=4, max_norm=5.0, callbacks=callbacks)
    logs = trainer.fit(x, y, micro=8, epochs=40)
    moved = (parameters_to_vector(model.parameters()).detach() - start).norm().item()
    print(f"last validation loss {logs['val']:.4f}, distance from the start {moved:.3f}")
    return trainer, moved


if __name__ == "__main__":
    trainer, moved = main()
