"""Discrete-time survival on a ward: hourly hazard of septic shock, preemptible training with restart from a checkpoint."""
import argparse
import io

import torch
import torch.nn as nn
import torch.nn.functional as F

HOURS = 24


def admit(n, seed):
    gen = torch.Generator().manual_seed(seed)
    vitals = torch.randn(n, 8, generator=gen)
    base = -3.4 + 0.6 * torch.sin(torch.arange(HOURS) / 4)
    risk = 0.9 * vitals[:, 0] - 0.7 * vitals[:, 1] + 0.5 * vitals[:, 2] * vitals[:, 3]
    hazard = torch.sigmoid(base + risk.unsqueeze(1))
    happens = torch.rand(n, HOURS, generator=gen) < hazard
    shock = torch.where(happens.any(1), happens.float().argmax(1), torch.tensor(HOURS))
    discharge = torch.randint(4, HOURS + 1, (n,), generator=gen)
    event = (shock < discharge).float()
    last = torch.minimum(shock, discharge - 1)  # last hour at risk
    return vitals, last, event


class HazardNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, HOURS))

    def forward(self, vitals):
        return self.trunk(vitals)


def survival_loss(logits, last, event):
    """-log likelihood: survive every hour before the last one, then shock or leave."""
    hour = torch.arange(HOURS)
    at_risk = (hour <= last.unsqueeze(1)).float()
    target = (hour == last.unsqueeze(1)).float() * event.unsqueeze(1)
    return (F.binary_cross_entropy_with_logits(logits, target, reduction="none") * at_risk).sum(1).mean()


def learning_rate(epoch, epochs, peak=0.20, warmup=3):
    return peak * min((epoch + 1) / warmup, 1.0) * (1 - epoch / epochs)


class Trainer:
    def __init__(self, args, data):
        self.args, self.data = args, data
        torch.manual_seed(args.seed)
        self.model = HazardNet()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=args.peak, weight_decay=1e-4)
        self.epoch = 0

    def save(self, file):
        torch.save({"epoch": self.epoch, "model": self.model.state_dict()}, file)

    def resume(self, file):
        state = torch.load(file)
        self.epoch = state["epoch"]
        self.model.load_state_dict(state["model"])

    def run_epoch(self):
        torch.manual_seed(1000 * self.args.seed + self.epoch)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.epoch, self.args.epochs, self.args.peak)
        vitals, last, event = self.data
        self.model.train()
        total = 0.0
        for idx in torch.randperm(len(vitals)).split(self.args.batch):
            loss = survival_loss(self.model(vitals[idx]), last[idx], event[idx])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(idx)
        self.epoch += 1
        return total / len(vitals)

    @torch.no_grad()
    def validate(self, vitals, last, event):
        self.model.eval()
        return survival_loss(self.model(vitals), last, event).item()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=24)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--peak", type=float, default=0.20)
    ap.add_argument("--seed", type=int, default=3)
    ap.add_argument("--preempt-at", type=int, default=11)
    args, _ = ap.parse_known_args()
    data, held = admit(2000, seed=50), admit(1000, seed=51)

    trainer, disk = Trainer(args, data), io.BytesIO()
    while trainer.epoch < args.epochs:
        loss = trainer.run_epoch()
        if trainer.epoch % 4 == 0:
            print(f"epoch {trainer.epoch:2d}  train {loss:.4f}  held-out {trainer.validate(*held):.4f}")
        if trainer.epoch == args.preempt_at:  # the scheduler takes the node away; a new process continues
            trainer.save(disk)
            disk.seek(0)
            trainer = Trainer(args, data)
            trainer.resume(disk)
            print(f"restarted at epoch {trainer.epoch}")
    return trainer, trainer.validate(*held)


if __name__ == "__main__":
    main()
