"""Delays of trams along their lines: sequences of different length, micro-batches accumulated to one update."""
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence


def make_trips(count, seed):
    g = torch.Generator().manual_seed(seed)
    trips = []
    for length in torch.randint(4, 20, (count,), generator=g).tolist():
        load = torch.randn(length, 3, generator=g)
        delay = torch.cumsum(0.3 * torch.relu(load[:, 0] + load[:, 1]) - 0.2, dim=0) + 0.5 * load[:, 2]
        trips.append((load, delay))
    return trips


def collate(trips):
    x = pad_sequence([t[0] for t in trips], batch_first=True)
    y = pad_sequence([t[1] for t in trips], batch_first=True)
    lengths = torch.tensor([len(t[1]) for t in trips])
    mask = torch.arange(x.shape[1])[None, :] < lengths[:, None]
    return x, y, mask


class DelayNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0]).squeeze(-1)


class Callback:
    def on_update(self, trainer):
        pass


class ValidationSlope(Callback):
    """Cosine between the gradient of the coming update and that of the validation loss."""

    def __init__(self, trips, every):
        self.batch = collate(trips)
        self.every = every
        self.rows = []

    def on_update(self, trainer):
        if trainer.updates % self.every:
            return
        x, y, mask = self.batch
        params = list(trainer.model.parameters())
        loss = trainer.sum_loss(trainer.model(x), y, mask) / mask.sum()
        slope = torch.cat([g.flatten() for g in torch.autograd.grad(loss, params)])
        update = torch.cat([p.grad.flatten() for p in params])
        cosine = torch.cosine_similarity(slope, update, dim=0)
        self.rows.append((trainer.updates, loss.item(), cosine.item()))


class Trainer:
    def __init__(self, model, lr, accumulate, max_norm, warmup, callbacks):
        self.model = model
        self.params = list(model.parameters())
        self.optimizer = torch.optim.Adam(self.params, lr=lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda n: min(1.0, n / warmup))
        self.accumulate = accumulate
        self.max_norm = max_norm
        self.callbacks = callbacks
        self.updates = 0

    @staticmethod
    def sum_loss(prediction, target, mask):
        return ((prediction - target)[mask] ** 2).sum()

    def update(self, stops):
        for p in self.params:
            p.grad.div_(stops)
        for callback in self.callbacks:
            callback.on_update(self)
        nn.utils.clip_grad_norm_(self.params, self.max_norm)
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        self.updates += 1

    def fit(self, trips, micro, epochs):
        for epoch in range(epochs):
            order = torch.randperm(len(trips)).split(micro)
            total, everything, stops = 0.0, 0, 0
            for i, idx in enumerate(order, start=1):
                x, y, mask = collate([trips[j] for j in idx.tolist()])
                loss = self.sum_loss(self.model(x), y, mask)
                loss.backward()
                stops += int(mask.sum())
                total += loss.item()
                if i % self.accumulate == 0 or i == len(order):
                    self.update(stops)
                    everything, stops = everything + stops, 0
            print(f"epoch {epoch}  loss per stop {total / everything:.4f}  rate {self.schedule.get_last_lr()[0]:.5f}")


def main():
    torch.manual_seed(29)
    slope = ValidationSlope(make_trips(40, seed=2), every=7)
    trainer = Trainer(DelayNet(), lr=0.02, accumulate=4, max_norm=1.0, warmup=8, callbacks=[slope])
    trainer.fit(make_trips(150, seed=1), micro=8, epochs=8)
    for update, loss, cosine in slope.rows:
        print(f"update {update:2d}  validation {loss:.4f}  cosine {cosine:+.3f}")
    return trainer, slope


if __name__ == "__main__":
    trainer, slope = main()
