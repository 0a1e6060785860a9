import torch
from torch import nn
import torch.nn.functional as F


class ClaimModel(nn.Module):
    def __init__(self, fields=12, width=24):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(fields, width), nn.ELU(), nn.Linear(width, width), nn.ELU())
        self.amount = nn.Linear(width, 1)

    def forward(self, x):
        return self.amount(self.base(x)).squeeze(-1)


class Hold:
    def __init__(self, part, first, last):
        self.part, self.first, self.last = part, first, last
        self.parked = None

    def __call__(self, trainer, epoch):
        if epoch == self.first:
            index = next(i for i, g in enumerate(trainer.opt.param_groups) if g["name"] == self.part)
            self.parked = trainer.opt.param_groups.pop(index)
        elif epoch == self.last:
            trainer.opt.add_param_group(self.parked)
            self.parked = None


class Trainer:
    def __init__(self, model, callbacks, lr=5e-3):
        self.model, self.callbacks = model, callbacks
        groups = [{"name": n, "params": list(m.parameters())} for n, m in model.named_children()]
        self.opt = torch.optim.AdamW(groups, lr=lr, weight_decay=0.05)

    def step(self, x, y):
        loss = F.huber_loss(self.model(x), y)
        self.model.zero_grad(set_to_none=False)
        loss.backward()
        self.opt.step()
        return loss.item()

    def fit(self, x, y, epochs, batch=40):
        for epoch in range(epochs):
            for callback in self.callbacks:
                callback(self, epoch)
            before = self.model.base[0].weight.detach().clone()
            for xb, yb in zip(x.split(batch), y.split(batch)):
                last = self.step(xb, yb)
            moved = (self.model.base[0].weight - before).norm().item()
            print(f"epoch {epoch} loss {last:.4f} base moved {moved:.4f}")


def claims(n, g):
    x = torch.randn(n, 12, generator=g)
    return x, x[:, 0].abs() + x[:, 1] * x[:, 2]


if __name__ == "__main__":
    torch.manual_seed(0)
    x, y = claims(320, torch.Generator().manual_seed(2))
    trainer = Trainer(ClaimModel(), [Hold("base", first=2, last=5)])
    trainer.fit(x, y, epochs=8)
