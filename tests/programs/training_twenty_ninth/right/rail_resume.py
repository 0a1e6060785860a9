"""Rail temperature model whose training is interrupted halfway and taken up again from a checkpoint."""
import os
import tempfile

import torch
from torch import nn


def make_rails(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=g)
    y = torch.tanh(x[:, 0] * 2) + 0.5 * (x[:, 1] * x[:, 2]) + 0.1 * torch.randn(count, generator=g)
    return x, y


class RailNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Linear(6, width, bias=False)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.05)
        self.second = nn.Linear(width, 1)

    def forward(self, x):
        return self.second(self.drop(torch.relu(self.norm(self.first(x))))).squeeze(-1)


class Trainer:
    total_epochs = 16
    warmup = 3

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.rate)
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}
        self.epoch = 0
        self.losses = []

    @classmethod
    def rate(cls, epoch):
        if epoch < cls.warmup:
            return (epoch + 1) / cls.warmup
        return 1.0 - (epoch - cls.warmup) / (cls.total_epochs - cls.warmup)

    @torch.no_grad()
    def follow(self, decay=0.9):
        for key, value in self.model.state_dict().items():
            if value.is_floating_point():
                self.shadow[key].mul_(decay).add_(value, alpha=1 - decay)
            else:
                self.shadow[key].copy_(value)

    def fit(self, x, y, until, batch_size=64):
        self.model.train()
        while self.epoch < until:
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch_size):
                loss = nn.functional.mse_loss(self.model(x[idx]), y[idx])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 2.0)
                self.optimizer.step()
                self.follow()
                total += loss.item() * len(idx)
            self.schedule.step()
            self.epoch += 1
            self.losses.append(total / len(x))
            print(f"epoch {self.epoch:2d}  loss {self.losses[-1]:.4f}  next rate {self.schedule.get_last_lr()[0]:.5f}")

    def save(self, path):
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "schedule": self.schedule.state_dict(),
                "shadow": self.shadow,
                "epoch": self.epoch,
                "rng": torch.get_rng_state(),
            },
            path,
        )

    @classmethod
    def resume(cls, path):
        state = torch.load(path, weights_only=True)
        with torch.device("meta"):
            model = RailNet()
        model.load_state_dict(state["model"], assign=True)
        trainer = cls(model)
        trainer.optimizer.load_state_dict(state["optimizer"])
        trainer.schedule.load_state_dict(state["schedule"])
        trainer.shadow = state["shadow"]
        trainer.epoch = state["epoch"]
        torch.set_rng_state(state["rng"])
        return trainer


def main():
    torch.manual_seed(33)
    x, y = make_rails(384, seed=1)
    x_test, y_test = make_rails(300, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rail.pt")
        trainer = Trainer(RailNet())
        trainer.fit(x, y, until=7)
        trainer.save(path)
        trainer = Trainer.resume(path)
    trainer.fit(x, y, until=Trainer.total_epochs)
    final = RailNet()
    final.load_state_dict(trainer.shadow)
    final.eval()
    with torch.no_grad():
        print(f"test loss of the averaged weights {nn.functional.mse_loss(final(x_test), y_test):.4f}")
    return trainer, final


if __name__ == "__main__":
    trainer, final = main()
