"""Sparse autoencoder for mixtures of spectral lines; hidden activity is collected during training and penalized."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BINS, LINES = 64, 12


def spectra(n, seed):
    gen = torch.Generator().manual_seed(seed)
    centers = torch.linspace(4, BINS - 5, LINES)
    axis = torch.arange(BINS, dtype=torch.float32)
    shapes = torch.exp(-((axis - centers.unsqueeze(1)) / 1.8) ** 2)
    on = (torch.rand(n, LINES, generator=gen) < 0.2).float()
    height = 0.5 + torch.rand(n, LINES, generator=gen)
    return (on * height) @ shapes + 0.03 * torch.randn(n, BINS, generator=gen)


class SparseCoder(nn.Module):
    def __init__(self, hidden=40, code=24):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(BINS, hidden), nn.ReLU(),
            nn.Linear(hidden, code), nn.ReLU(),
        )
        self.decode = nn.Linear(code, BINS)

    def forward(self, x):
        return self.decode(self.encode(x))


class ActivityPenalty:
    """Collects the output of all ReLU layers of a module and returns their mean absolute value."""

    def __init__(self, module, weight):
        self.layers = [m for m in module.modules() if isinstance(m, nn.ReLU)]
        self.weight = weight
        self.outputs = []
        self.handles = []

    def open(self):
        for layer in self.layers:
            self.handles.append(layer.register_forward_hook(self._store))

    def _store(self, layer, inputs, output):
        self.outputs.append(output)

    def take(self):
        value = sum(o.abs().mean() for o in self.outputs)
        self.outputs.clear()
        return self.weight * value

    def close(self):
        self.outputs.clear()


class Trainer:
    def __init__(self, model, weight=0.004, lr=3e-3):
        self.model = model
        self.penalty = ActivityPenalty(model.encode, weight)
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)
        self.log = []

    def epoch(self, x, gen):
        self.model.train()
        self.penalty.open()
        fit = activity = 0.0
        batches = torch.randperm(len(x), generator=gen).split(32)
        for idx in batches:
            recon = self.model(x[idx])
            mse = F.mse_loss(recon, x[idx])
            extra = self.penalty.take()
            loss = mse + extra
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            fit += mse.item()
            activity += extra.item()
        self.penalty.close()
        self.log.append((fit / len(batches), activity / len(batches)))
        return self.log[-1]

    @torch.no_grad()
    def report(self, x):
        self.model.eval()
        code = self.model.encode(x)
        self.penalty.close()
        return F.mse_loss(self.model.decode(code), x).item(), (code > 1e-3).float().mean().item()


def main(epochs=40):
    torch.manual_seed(10)
    gen = torch.Generator().manual_seed(10)
    data, held = spectra(768, 1), spectra(128, 2)
    trainer = Trainer(SparseCoder())
    for k in range(epochs):
        fit, activity = trainer.epoch(data, gen)
        if k % 8 == 7:
            print(f"epoch {k} fit {fit:.4f} activity {activity:.4f}")
    err, density = trainer.report(held)
    print(f"held-out error {err:.4f}, active codes {density:.3f}")
    return trainer, held, err


if __name__ == "__main__":
    trainer, held, err = main()
