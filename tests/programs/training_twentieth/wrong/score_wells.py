"""Denoising score matching with an energy network (Vincent, 2011; Song & Ermon, 2019) for positions of trapped atoms.

The score is minus the gradient of a scalar energy, so that the field is conservative.  The traps are known, which gives
the exact score of the noisy positions to compare with.
"""
import torch
from torch import nn

torch.manual_seed(8)
torch.set_num_threads(1)

TRAPS = torch.tensor([[-1.5, -1.0], [1.5, -1.0], [0.0, 1.6], [0.2, -0.1]])
SPREAD = 0.2
SIGMAS = torch.tensor([0.15, 0.3, 0.6, 1.0])


def atoms(n):
    return TRAPS[torch.randint(0, len(TRAPS), (n,))] + SPREAD * torch.randn(n, 2)


def exact_score(x, sigma):
    var = (SPREAD ** 2 + sigma ** 2).unsqueeze(1)
    offset = TRAPS.unsqueeze(0) - x.unsqueeze(1)
    weight = (-0.5 * offset.pow(2).sum(-1) / var).softmax(dim=1)
    return (weight.unsqueeze(-1) * offset).sum(1) / var


class SwishFunction(torch.autograd.Function):
    """x * sigmoid(x), keeping one tensor for the backward pass instead of three."""

    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        y = x * gate
        ctx.save_for_backward(gate + y * (1 - gate))
        return y

    @staticmethod
    def backward(ctx, grad_output):
        slope, = ctx.saved_tensors
        return grad_output * slope


class Swish(nn.Module):
    def forward(self, x):
        return SwishFunction.apply(x)


class EnergyNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(3, width), Swish(),
            nn.Linear(width, width), Swish(),
            nn.Linear(width, width), Swish(),
            nn.Linear(width, 1, bias=False),
        )

    def forward(self, x, sigma):
        features = torch.cat([x, sigma.log().unsqueeze(1)], dim=1)
        return self.net(features).squeeze(1)

    def score(self, x, sigma, create_graph=False):
        x = x.detach().requires_grad_(True)
        energy = self(x, sigma).sum()
        slope, = torch.autograd.grad(energy, x, create_graph=create_graph)
        return -slope / sigma.unsqueeze(1)


def dsm_loss(model, clean):
    sigma = SIGMAS[torch.randint(0, len(SIGMAS), (len(clean),))]
    noise = torch.randn_like(clean)
    noisy = clean + sigma.unsqueeze(1) * noise
    score = model.score(noisy, sigma, create_graph=True)
    return (sigma.unsqueeze(1) * score + noise).pow(2).sum(1).mean()


def evaluate(model):
    torch.manual_seed(100)
    errors = []
    for sigma in SIGMAS:
        level = sigma.expand(1000)
        x = atoms(1000) + sigma * torch.randn(1000, 2)
        gap = sigma * (model.score(x, level) - exact_score(x, level))
        errors.append(gap.pow(2).sum(1).mean().item())
    return errors


def main():
    model = EnergyNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)
    running = 2.0
    for step in range(1, 1001):
        loss = dsm_loss(model, atoms(256))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running = 0.98 * running + 0.02 * loss.item()
        if step % 250 == 0:
            print(f"step {step:4d}  loss {running:.3f}")
    errors = evaluate(model)
    print("squared error of the scaled score: " + "  ".join(f"{s:.2f}: {e:.3f}" for s, e in zip(SIGMAS.tolist(), errors)))
    return model, errors


if __name__ == "__main__":
    model, errors = main()
