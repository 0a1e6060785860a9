"""Progressive growing: start with a shallow residual net, insert new blocks between stages, carry on training.

A fresh block starts as the identity (its last layer is zero), so growth leaves the function unchanged.
Optimizer state of the surviving weights moves over to the new optimizer.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class GrowingNet(nn.Module):
    """Input features are random Fourier waves that stay as drawn; everything after them is learned."""

    def __init__(self, inputs, dim=48, waves=32):
        super().__init__()
        self.register_buffer("waves", 1.5 * torch.randn(inputs, waves))
        self.inlet = nn.Linear(2 * waves, dim)
        self.blocks = nn.ModuleList([Residual(dim)])
        self.outlet = nn.Linear(dim, 1)

    def forward(self, x):
        z = x @ self.waves
        h = self.inlet(torch.cat([z.sin(), z.cos()], -1))
        for block in self.blocks:
            h = block(h)
        return self.outlet(F.gelu(h)).squeeze(-1)

    def grow(self):
        grown = []
        for block in self.blocks:
            grown += [block, Residual(block.down.out_features)]
        self.blocks = nn.ModuleList(grown)


def make_optimizer(model, lr, previous=None):
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 1e-3}, {"params": vectors, "weight_decay": 0.0}], lr=lr)
    if previous is not None:
        for p in matrices + vectors:
            if p in previous.state:
                optimizer.state[p] = previous.state[p]
    return optimizer


class GrowingTrainer:
    def __init__(self, model, lr, stages, batch=64):
        self.model, self.lr, self.stages, self.batch = model, lr, stages, batch
        self.optimizer = make_optimizer(model, lr)

    def grow(self, x):
        with torch.no_grad():
            before = self.model(x)
            self.model.grow()
            change = (self.model(x) - before).abs().max().item()
        self.optimizer = make_optimizer(self.model, self.lr, previous=self.optimizer)
        print(f"  grown to {len(self.model.blocks)} blocks, output moved by {change:.1e}")

    def fit(self, x, y, x_test, y_test):
        for stage, epochs in enumerate(self.stages):
            if stage > 0:
                self.grow(x_test)
            schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.1, total_iters=epochs)
            for _ in range(epochs):
                for idx in torch.randperm(len(x)).split(self.batch):
                    self.optimizer.zero_grad()
                    loss = F.mse_loss(self.model(x[idx]), y[idx])
                    loss.backward()
                    self.optimizer.step()
                schedule.step()
            print(f"stage {stage}: test mse {self.evaluate(x_test, y_test):.4f}")

    @torch.no_grad()
    def evaluate(self, x, y):
        return F.mse_loss(self.model(x), y).item()


def rainfall(n, gen):
    """A made-up terrain response: position, altitude and wind direction to rain."""
    u = 2 * torch.rand(n, 4, generator=gen) - 1
    e, n_, alt, wind = u.unbind(1)
    rain = torch.sin(4 * e * n_) + alt * torch.cos(3.14 * wind + 2 * e) - (alt - 0.3 * n_).abs()
    return u, rain + 0.02 * torch.randn(n, generator=gen)


torch.manual_seed(0)
gen = torch.Generator().manual_seed(4)
train, test = rainfall(1280, gen), rainfall(512, gen)
trainer = GrowingTrainer(GrowingNet(4), lr=3e-3, stages=[8, 8, 8])
trainer.fit(*train, *test)
active = [block.down.weight.norm().item() for block in trainer.model.blocks]
print("norms of the last layers of the blocks:", [round(a, 3) for a in active])
