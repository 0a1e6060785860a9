"""Pump diagnostics in two stages: flow is learned together with the encoder, then a vibration head is added on top."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Stage:
    name: str
    epochs: int
    frozen: tuple = ()


def make_pumps(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 8, generator=g)
    flow = torch.tanh(x[:, 0] + x[:, 1]) - 0.5 * x[:, 2] * x[:, 3]
    vibration = (1.5 * flow).sin() + 0.3 * x[:, 0]
    return {"x": x, "flow": flow, "vibration": vibration}


class PumpNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.heads = nn.ModuleDict({"flow": nn.Linear(width, 1), "vibration": nn.Linear(width, 1)})

    def forward(self, x, task):
        return self.heads[task](self.encoder(x)).squeeze(-1)


class FreezeSchedule:
    """Switches parts of the model off at the start of the stage that lists them."""

    def apply(self, model, stage):
        for name, param in model.named_parameters():
            param.requires_grad_(not name.startswith(stage.frozen))


class GradientLog:
    """Mean gradient norm of the epoch for every top-level part."""

    def __init__(self):
        self.rows = []
        self.sums = {}

    def on_batch_end(self, model):
        for name, param in model.named_parameters():
            part = name.split(".")[0]
            self.sums[part] = self.sums.get(part, 0.0) + param.grad.norm().item()

    def on_epoch_end(self, batches):
        self.rows.append({part: total / batches for part, total in self.sums.items()})
        self.sums = {}


class Trainer:
    def __init__(self, model, lr=0.01, weight_decay=0.1, batch_size=64):
        self.model = model
        self.batch_size = batch_size
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.schedule = FreezeSchedule()
        self.log = GradientLog()
        for param in model.parameters():
            param.grad = torch.zeros_like(param)

    def fit_stage(self, stage, data):
        self.schedule.apply(self.model, stage)
        self.model.train()
        x, y = data["x"], data[stage.name]
        for epoch in range(stage.epochs):
            batches = torch.randperm(len(x)).split(self.batch_size)
            total = 0.0
            for idx in batches:
                # the buffers stay allocated, the log reads all of them
                self.optimizer.zero_grad(set_to_none=False)
                loss = nn.functional.mse_loss(self.model(x[idx], stage.name), y[idx])
                loss.backward()
                self.log.on_batch_end(self.model)
                self.optimizer.step()
                total += loss.item()
            self.log.on_epoch_end(len(batches))
            if epoch % 6 == 0 or epoch == stage.epochs - 1:
                print(f"{stage.name:9s} epoch {epoch:2d}  loss {total / len(batches):.4f}")

    @torch.no_grad()
    def score(self, data, task):
        self.model.eval()
        return nn.functional.mse_loss(self.model(data["x"], task), data[task]).item()


def main():
    torch.manual_seed(14)
    train, test = make_pumps(512, seed=1), make_pumps(256, seed=2)
    stages = [
        Stage("flow", epochs=18, frozen=("heads.vibration",)),
        Stage("vibration", epochs=24, frozen=("encoder", "heads.flow")),
    ]
    trainer = Trainer(PumpNet())
    scores = {}
    for stage in stages:
        trainer.fit_stage(stage, train)
        scores[stage.name] = {task: trainer.score(test, task) for task in ("flow", "vibration")}
    for name, row in scores.items():
        print(f"after {name:9s}: " + "  ".join(f"{task} {value:.4f}" for task, value in row.items()))
    return trainer, scores


if __name__ == "__main__":
    trainer, scores = main()
