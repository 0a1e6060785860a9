"""Vibration of a grinding mill: residual net with gated branches, sharpness-aware updates, rewinding on a plateau."""
import torch
from torch import nn


def make_runs(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 6, generator=g)
    y = torch.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * torch.randn(count, generator=g)
    return x, y


class GatedBlock(nn.Module):
    """Residual branch whose gate opens from zero."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.gate * self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class MillNet(nn.Module):
    def __init__(self, width=24, depth=2):
        super().__init__()
        self.register_buffer("scale", torch.ones(6))
        self.inp = nn.Linear(6, width)
        self.blocks = nn.Sequential(*[GatedBlock(width) for _ in range(depth)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.blocks(torch.tanh(self.inp(x / self.scale)))).squeeze(-1)


class SharpnessAware:
    """Foret et al. 2021: the gradient of the update is taken at the worst point of a small ball."""

    def __init__(self, base, rho):
        self.base = base
        self.rho = rho
        self.params = [p for group in base.param_groups for p in group["params"]]

    def step(self, closure):
        self.base.zero_grad()
        loss = closure()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in self.params]).norm()
            moves = [p.grad * (self.rho / (norm + 1e-12)) for p in self.params]
            kept = [p.clone() for p in self.params]
            for p, move in zip(self.params, moves):
                p.add_(move)
        self.base.zero_grad()
        closure()
        with torch.no_grad():
            for p, old in zip(self.params, kept):
                p.copy_(old)
        self.base.step()
        return loss


class Rewind:
    """Keeps the best weights; after `patience` epochs without a better score the run goes on from them."""

    def __init__(self, patience, shrink):
        self.patience, self.shrink = patience, shrink
        self.best, self.bad, self.rewinds = float("inf"), 0, 0
        self.weights = []

    @torch.no_grad()
    def on_epoch_end(self, trainer, score):
        params = list(trainer.model.parameters())
        if score < self.best:
            self.best, self.bad = score, 0
            self.weights = [p.clone() for p in params]
            return
        self.bad += 1
        if self.bad >= self.patience:
            for p, kept in zip(params, self.weights):
                p.data.copy_(kept)
            trainer.optimizer.base.state.clear()
            for group in trainer.optimizer.base.param_groups:
                group["lr"] *= self.shrink
            self.bad, self.rewinds = 0, self.rewinds + 1


class Trainer:
    def __init__(self, model, lr, rho, rewind):
        self.model = model
        self.optimizer = SharpnessAware(torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9), rho)
        self.rewind = rewind

    def fit(self, x, y, val, epochs, batch_size=64):
        self.model.scale.copy_(x.std(dim=0))
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for idx in torch.randperm(len(x)).split(batch_size):

                def closure():
                    loss = nn.functional.mse_loss(self.model(x[idx]), y[idx])
                    loss.backward()
                    return loss.detach()

                total += self.optimizer.step(closure).item() * len(idx)
            self.model.eval()
            with torch.no_grad():
                score = nn.functional.mse_loss(self.model(val[0]), val[1]).item()
            self.rewind.on_epoch_end(self, score)
            print(f"epoch {epoch:2d}  train {total / len(x):.4f}  val {score:.4f}  rewinds {self.rewind.rewinds}")


def main():
    torch.manual_seed(41)
    rewind = Rewind(patience=2, shrink=0.5)
    trainer = Trainer(MillNet(), lr=0.1, rho=0.05, rewind=rewind)
    trainer.fit(*make_runs(512, seed=1), make_runs(300, seed=2), epochs=20)
    print(f"best validation loss {rewind.best:.4f}, gates {[round(b.gate.item(), 3) for b in trainer.model.blocks]}")
    return trainer, rewind


if __name__ == "__main__":
    trainer, rewind = main()
