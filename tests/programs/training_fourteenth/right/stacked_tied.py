"""Stacked denoising autoencoder with tied weights, trained layer by layer, then fine-tuned with few labels.

A layer decodes with the transpose of its own matrix. While layer k is trained, the layers below it only deliver
its input. Fine-tuning keeps the first layer, and gives the layers above a smaller rate than the classifier.
"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SIZES = (64, 48, 24)
LABELLED = 60


def spectra(n, seed):
    rng = np.random.default_rng(seed)
    axis = np.linspace(0, 1, SIZES[0])
    y = rng.integers(0, 4, size=n)
    centres = np.array([[0.2, 0.5], [0.2, 0.8], [0.35, 0.5], [0.35, 0.8]])[y] + rng.normal(0, 0.02, size=(n, 2))
    heights = rng.uniform(0.2, 1.0, size=(n, 2))
    x = (heights[:, :, None] * np.exp(-((axis - centres[:, :, None]) / 0.05) ** 2)).sum(1)
    x += rng.uniform(0, 0.5, size=(n, 1)) * axis + rng.normal(0, 0.15, size=x.shape)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


class TiedLayer(nn.Module):
    def __init__(self, n_in, n_out, positive_output):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_out, n_in))
        nn.init.xavier_uniform_(self.weight)
        self.up_bias = nn.Parameter(torch.zeros(n_out))
        self.down_bias = nn.Parameter(torch.zeros(n_in))
        self.positive_output = positive_output

    def forward(self, x):
        return F.elu(F.linear(x, self.weight, self.up_bias)) + 1.0

    def decode(self, h):
        out = F.linear(h, self.weight.t(), self.down_bias)
        return F.elu(out) + 1.0 if self.positive_output else out


def corrupt(x, drop=0.25):
    return x * (torch.rand_like(x) > drop)


def pretrain(stack, x, epochs=12, batch=64):
    for k, layer in enumerate(stack):
        with torch.no_grad():
            below = x
            for frozen in stack[:k]:
                below = frozen(below)
        optimizer = torch.optim.Adam(layer.parameters(), lr=3e-3)
        for epoch in range(epochs):
            total = 0.0
            for rows in torch.randperm(len(below)).split(batch):
                clean = below[rows]
                loss = F.mse_loss(layer.decode(layer(corrupt(clean))), clean)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item() * len(rows)
        print(f"layer {k + 1}: reconstruction error {total / len(below):.4f}, input variance {below.var():.4f}")


def fine_tune(stack, x, y, steps=150):
    head = nn.Linear(SIZES[-1], 4)
    nn.init.zeros_(head.weight)
    stack[0].requires_grad_(False)
    upper = [p for layer in stack[1:] for p in (layer.weight, layer.up_bias)]
    optimizer = torch.optim.Adam([{"params": upper, "lr": 5e-4}, {"params": head.parameters(), "lr": 1e-2}])
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, [lambda s: min(1.0, s / 40), lambda s: 1.0])
    for _ in range(steps):
        loss = F.cross_entropy(head(stack(corrupt(x, 0.1))), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
    return head


@torch.no_grad()
def accuracy(stack, head, x, y):
    return (head(stack(x)).argmax(1) == y).float().mean().item()


def new_stack():
    return nn.Sequential(*(TiedLayer(a, b, i > 0) for i, (a, b) in enumerate(zip(SIZES[:-1], SIZES[1:]))))


def main():
    torch.manual_seed(8)
    x, y = spectra(2000, 1)
    x_test, y_test = spectra(2000, 2)
    stack = new_stack()
    pretrain(stack, x)
    first = stack[0].weight.clone()
    head = fine_tune(stack, x[:LABELLED], y[:LABELLED])
    with_pretraining = accuracy(stack, head, x_test, y_test)
    print(f"first layer unchanged by fine-tuning: {torch.equal(first, stack[0].weight)}")

    plain = new_stack()
    head = fine_tune(plain, x[:LABELLED], y[:LABELLED])
    print(f"accuracy with {LABELLED} labels: {with_pretraining:.3f}, from random layers {accuracy(plain, head, x_test, y_test):.3f}")


main()
