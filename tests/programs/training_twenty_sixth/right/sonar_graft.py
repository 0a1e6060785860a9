"""Low-rank grafts on a frozen sonar backbone. Checkpoints hold the grafts only, the backbone is rebuilt from its seed."""
import io
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Plan:
    backbone_seed: int = 100
    seed: int = 9
    width: int = 48
    rank: int = 4
    n: int = 512
    batch: int = 64
    epochs: int = 12
    stop_after: int = 6
    lr: float = 1e-2


class GraftedLinear(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.graft_down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features ** 0.5)
        self.graft_up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.graft_down.T @ self.graft_up.T


def build(plan):
    with torch.random.fork_rng():
        torch.manual_seed(plan.backbone_seed)
        layers = [nn.Linear(24, plan.width), nn.Linear(plan.width, plan.width), nn.Linear(plan.width, 3)]
    first, second, last = (GraftedLinear(layer, plan.rank) for layer in layers)
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Dropout(0.1), last)


def graft_state(model):
    return {k: v for k, v in model.state_dict().items() if "graft" in k}


def load_grafts(model, state):
    report = model.load_state_dict(state, strict=False)
    assert not report.unexpected_keys, report.unexpected_keys
    assert all(".base." in k for k in report.missing_keys), report.missing_keys


def echoes(plan):
    g = torch.Generator().manual_seed(77)
    x = torch.randn(plan.n, 24, generator=g)
    score = torch.stack([x[:, 0] * x[:, 1], x[:, 2].abs() - 0.8, x[:, 3] + 0.5 * x[:, 4]], dim=1)
    return x, score.argmax(dim=1)


def build_training(plan):
    model = build(plan)
    grafts = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(grafts, lr=plan.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=plan.lr, total_steps=plan.epochs * (plan.n // plan.batch))
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, data, plan, first_epoch, last_epoch):
    x, y = data
    model.train()
    for epoch in range(first_epoch, last_epoch):
        total = 0.0
        for idx in torch.randperm(plan.n).split(plan.batch):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(idx)
        print(f"epoch {epoch + 1:2d}  loss {total / plan.n:.4f}  lr {scheduler.get_last_lr()[0]:.5f}")


def main(plan=Plan()):
    torch.manual_seed(plan.seed)
    data = echoes(plan)
    model, optimizer, scheduler = build_training(plan)
    train(model, optimizer, scheduler, data, plan, 0, plan.stop_after)
    buffer = io.BytesIO()
    torch.save({"grafts": graft_state(model), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
                "epoch": plan.stop_after, "rng": torch.get_rng_state()}, buffer)
    print(f"checkpoint: {buffer.tell() / 1024:.1f} KiB")

    # a new job on another machine
    buffer.seek(0)
    saved = torch.load(buffer)
    model, optimizer, scheduler = build_training(plan)
    load_grafts(model, saved["grafts"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["rng"])
    train(model, optimizer, scheduler, data, plan, saved["epoch"], plan.epochs)
    model.eval()
    with torch.no_grad():
        accuracy = (model(data[0]).argmax(1) == data[1]).float().mean().item()
    print(f"accuracy after resuming {accuracy:.3f}")
    return model


if __name__ == "__main__":
    model = main()
