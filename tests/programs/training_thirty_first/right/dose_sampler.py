"""Sample dose-response curves from a posterior with stochastic gradient Langevin dynamics in cycles."""
import math

import torch
from torch import nn
from torch.func import functional_call

NOISE = 0.2
PRIOR = 1.5


def response(dose):
    return 1.2 * torch.sigmoid(4.0 * (dose - 0.3)) - 0.4 * torch.exp(-((dose + 0.8) ** 2) / 0.4)


def make_trial(count, generator):
    dose = 3.0 * torch.rand(count, 1, generator=generator) - 1.5
    return dose, response(dose) + NOISE * torch.randn(count, 1, generator=generator)


class Curve(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, dose):
        return self.net(dose)


def energy(model, dose, effect, total):
    """Estimate of the negative log posterior of all patients from a part of them."""
    fit = ((model(dose) - effect) ** 2).mean() * total / (2 * NOISE**2)
    prior = sum(p.pow(2).sum() for p in model.parameters()) / (2 * PRIOR**2)
    return fit + prior


class CyclicStep:
    def __init__(self, largest, cycle, quiet=0.5):
        self.largest = largest
        self.cycle = cycle
        self.quiet = quiet

    def at(self, step):
        position = (step % self.cycle) / self.cycle
        return 0.5 * self.largest * (1.0 + math.cos(math.pi * position)), position >= self.quiet


def langevin(model, dose, effect, sizes, steps, batch=50, keep_every=20):
    params = list(model.parameters())
    samples = []
    for step in range(steps):
        size, collecting = sizes.at(step)
        pick = torch.randint(len(dose), (batch,))
        grads = torch.autograd.grad(energy(model, dose[pick], effect[pick], len(dose)), params)
        for p, g in zip(params, grads):
            p.data.add_(g, alpha=-0.5 * size)
            if collecting:
                p.data.add_(torch.randn_like(p), alpha=math.sqrt(size))
        if collecting and step % keep_every == 0:
            samples.append({name: p.detach().clone() for name, p in model.named_parameters()})
    return samples


@torch.inference_mode()
def curves(model, samples, dose):
    return torch.stack([functional_call(model, sample, (dose,)) for sample in samples])


def coverage(drawn, effect, level=0.9):
    noisy = drawn + NOISE * torch.randn_like(drawn)
    tail = (1.0 - level) / 2
    low, high = torch.quantile(noisy, torch.tensor([tail, 1.0 - tail]), dim=0)
    return ((effect >= low) & (effect <= high)).float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(41)
    generator = torch.Generator().manual_seed(7)
    dose, effect = make_trial(200, generator)
    test_dose, test_effect = make_trial(400, generator)
    model = Curve()
    samples = langevin(model, dose, effect, CyclicStep(1e-4, cycle=1000), steps=3000)
    drawn = curves(model, samples, test_dose)
    rmse = (drawn.mean(dim=0) - response(test_dose)).pow(2).mean().sqrt().item()
    covered = coverage(drawn, test_effect)
    print(f"{len(samples)} samples  error of the mean curve {rmse:.4f}  spread {drawn.std(dim=0).mean():.4f}")
    print(f"share of new patients inside the 90% band {covered:.3f}")
