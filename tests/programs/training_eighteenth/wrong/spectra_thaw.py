"""Transfer a spectrometer model to a new instrument: pretrain, then fine-tune with a gradual thaw.

Phase 1 fits the whole network on instrument A. Phase 2 swaps the head, trains it alone, and thaws the
trunk block by block with smaller learning rates, under one warm-up + linear-decay schedule.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


def spectra(n, shift, width, noise, gen):
    """Three gases with Lorentzian lines at known positions; targets are their concentrations."""
    grid = torch.linspace(0, 1, 80)
    centre = torch.tensor([0.25, 0.5, 0.7]) + shift
    conc = torch.rand(n, 3, generator=gen)
    lines = 1 / (1 + ((grid - centre[:, None]) / width) ** 2)
    x = 1 - torch.exp(-(conc @ lines))
    return x + 0.02 * torch.randn(n, 80, generator=gen), conc + noise * torch.randn(n, 3, generator=gen)


class SpectraNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.blocks = nn.ModuleList([
            nn.Sequential(nn.Linear(80, hidden), nn.GELU()),
            nn.Sequential(nn.Linear(hidden, hidden), nn.GELU()),
        ])
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Callback:
    def on_fit_begin(self, trainer): ...
    def on_epoch_begin(self, trainer): ...
    def on_step_begin(self, trainer): ...


class Thaw(Callback):
    """Freezes all blocks at first; `plan` maps an epoch to (block index, learning rate)."""

    def __init__(self, plan):
        self.plan = plan

    def on_fit_begin(self, trainer):
        trainer.model.blocks.requires_grad_(False)

    def on_epoch_begin(self, trainer):
        if trainer.epoch in self.plan:
            index, lr = self.plan[trainer.epoch]
            block = trainer.model.blocks[index].requires_grad_(True)
            trainer.optimizer.add_param_group({"params": list(block.parameters()), "lr": lr})


class WarmupLinear(Callback):
    def __init__(self, warmup):
        self.warmup = warmup

    def on_fit_begin(self, trainer):
        self.base_lrs = [g["lr"] for g in trainer.optimizer.param_groups]
        self.total = trainer.epochs * trainer.steps_per_epoch

    def on_step_begin(self, trainer):
        t = trainer.step
        factor = min((t + 1) / self.warmup, (self.total - t) / (self.total - self.warmup))
        for group, base in zip(trainer.optimizer.param_groups, self.base_lrs):
            group["lr"] = base * factor


class Trainer:
    def __init__(self, model, optimizer, data, batch, callbacks=()):
        self.model, self.optimizer, self.data, self.batch = model, optimizer, data, batch
        self.callbacks = callbacks
        self.steps_per_epoch = -(-len(data[0]) // batch)

    def emit(self, event):
        for cb in self.callbacks:
            getattr(cb, event)(self)

    def fit(self, epochs):
        self.epochs, self.step = epochs, 0
        self.emit("on_fit_begin")
        for self.epoch in range(epochs):
            self.emit("on_epoch_begin")
            for idx in torch.randperm(len(self.data[0])).split(self.batch):
                self.emit("on_step_begin")
                self.optimizer.zero_grad()
                F.mse_loss(self.model(self.data[0][idx]), self.data[1][idx]).backward()
                self.optimizer.step()
                self.step += 1


torch.manual_seed(0)
gen = torch.Generator().manual_seed(3)
model = SpectraNet()
Trainer(model, torch.optim.Adam(model.parameters(), lr=1e-3), spectra(2048, 0.0, 0.04, 0.0, gen), 64).fit(12)

target, check = spectra(640, 0.03, 0.06, 0.3, gen), spectra(1024, 0.03, 0.06, 0.0, gen)
model.head = nn.Linear(64, 3)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9)
Trainer(model, optimizer, target, 8, [Thaw({2: (1, 0.08), 4: (0, 0.05)}), WarmupLinear(40)]).fit(14)
with torch.no_grad():
    print(f"rmse on instrument B: {F.mse_loss(model(check[0]), check[1]).sqrt().item():.4f}")
