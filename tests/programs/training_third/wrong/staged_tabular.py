import torch
from torch import nn
import torch.nn.functional as F


class RiskModel(nn.Module):
    def __init__(self, fields=10, width=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(fields, width), nn.SELU(), nn.Linear(width, width), nn.SELU())
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        return self.score(self.encoder(x)).squeeze(-1)


class Callback:
    def on_epoch_start(self, trainer, epoch):
        pass


class HoldEncoder(Callback):
    def __init__(self, epoch):
        self.epoch = epoch

    def on_epoch_start(self, trainer, epoch):
        if epoch == self.epoch:
            trainer.model.encoder.requires_grad_(False)
            print("encoder held from epoch", epoch)


class Progress(Callback):
    def on_epoch_start(self, trainer, epoch):
        live = sum(p.numel() for p in trainer.model.parameters() if p.requires_grad)
        print(f"epoch {epoch} trainable {live} last loss {trainer.last:.4f}")


class Trainer:
    def __init__(self, model, callbacks, lr=3e-3, weight_decay=0.05):
        self.model, self.callbacks, self.last = model, callbacks, float("nan")
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)

    def step(self, x, y):
        loss = F.binary_cross_entropy_with_logits(self.model(x), y)
        self.opt.zero_grad(set_to_none=False)
        loss.backward()
        self.opt.step()
        self.last = loss.item()

    def fit(self, x, y, epochs, batch=40):
        for epoch in range(epochs):
            for cb in self.callbacks:
                cb.on_epoch_start(self, epoch)
            for xb, yb in zip(x.split(batch), y.split(batch)):
                self.step(xb, yb)


def applicants(n, g):
    x = torch.randn(n, 10, generator=g)
    return x, ((x[:, 0] * x[:, 1] + x[:, 2]) > 0).float()


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = applicants(400, torch.Generator().manual_seed(3))
    trainer = Trainer(RiskModel(), [HoldEncoder(2), Progress()])
    trainer.fit(x, y, epochs=7)
