import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def sample_task(generator, shots=8):
    direction = torch.randn(4, generator=generator)
    x = torch.randn(2 * shots, 4, generator=generator)
    y = (x @ direction > 0).float()
    return x[:shots], y[:shots], x[shots:], y[shots:]


def adapt(model, weights, x, y, rates, steps):
    for _ in range(steps):
        loss = F.binary_cross_entropy_with_logits(functional_call(model, weights, (x,)).squeeze(-1), y)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: w - rates[name] * g for (name, w), g in zip(weights.items(), grads)}
    return weights


def main():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(2)
    model = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
    initial = dict(model.named_parameters())
    rates = {name: torch.tensor(0.1, requires_grad=True) for name in initial}
    outer = torch.optim.Adam([{"params": list(initial.values())}, {"params": list(rates.values()), "lr": 1e-2}], lr=3e-3)
    for iteration in range(20):
        outer.zero_grad()
        losses, hits = [], []
        for _ in range(4):
            xs, ys, xq, yq = sample_task(generator)
            adapted = adapt(model, initial, xs, ys, rates, steps=2)
            logits = functional_call(model, adapted, (xq,)).squeeze(-1)
            losses.append(F.binary_cross_entropy_with_logits(logits, yq))
            hits.append(((logits > 0) == (yq > 0.5)).float().mean().item())
        meta_loss = torch.stack(losses).mean()
        meta_loss.backward()
        outer.step()
        if iteration % 5 == 4:
            print(f"iteration {iteration + 1} loss {meta_loss.item():.4f} query acc {sum(hits) / 4:.3f}")
    print("rates", [round(r.item(), 3) for r in rates.values()])


if __name__ == "__main__":
    main()
