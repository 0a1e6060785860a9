"""Stacked autoencoder with tied weights: greedy layer-wise pretraining, then fine-tuning of the whole stack.

Layer k is trained to reconstruct the codes of layer k-1, which stays as it is meanwhile (Vincent et al., 2010).
The decoder uses the transposed encoder matrices, so each layer has a single weight.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 13
SIZES = [40, 24, 12, 5]
PRETRAIN_EPOCHS, FINETUNE_EPOCHS, BATCH = 12, 20, 64
NOISE = 0.2

torch.manual_seed(SEED)


def make_table(n, mix):
    hidden = torch.randn(n, 4)
    return torch.tanh(hidden @ mix) + 0.05 * torch.randn(n, SIZES[0])


class TiedLayer(nn.Module):
    """Encoder x -> act(Wx + b) and decoder h -> act_back(W'h + c) with the same W."""

    def __init__(self, n_in, n_code, act, act_back):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_code, n_in))
        self.bias = nn.Parameter(torch.zeros(n_code))
        self.bias_back = nn.Parameter(torch.zeros(n_in))
        self.act, self.act_back = act, act_back
        nn.init.orthogonal_(self.weight)

    def encode(self, x):
        return self.act(F.linear(x, self.weight, self.bias))

    def decode(self, h):
        return self.act_back(F.linear(h, self.weight.t(), self.bias_back))

    def forward(self, x):
        return self.decode(self.encode(x))


class Stack(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        n = len(sizes) - 1
        self.layers = nn.ModuleList(
            TiedLayer(a, b, nn.Identity() if k == n - 1 else nn.Tanh(), nn.Identity() if k == 0 else nn.Tanh())
            for k, (a, b) in enumerate(zip(sizes[:-1], sizes[1:]))
        )

    def encode(self, x, depth=None):
        for layer in self.layers[:depth]:
            x = layer.encode(x)
        return x

    def forward(self, x):
        h = self.encode(x)
        for layer in reversed(self.layers):
            h = layer.decode(h)
        return h


def corrupt(x):
    return x * (torch.rand_like(x) > NOISE).float()


def test_error(model, x):
    with torch.no_grad():
        return F.mse_loss(model(x), x).item()


mix = torch.randn(4, SIZES[0])
train_x, test_x = make_table(1500, mix), make_table(500, mix)
model = Stack(SIZES)
print(f"before: {test_error(model, test_x):.4f}")

for depth, layer in enumerate(model.layers):
    optimizer = torch.optim.Adam(layer.parameters(), lr=3e-3)
    for epoch in range(PRETRAIN_EPOCHS):
        for idx in torch.randperm(len(train_x)).split(BATCH):
            with torch.no_grad():
                codes = model.encode(train_x[idx], depth)
            loss = F.mse_loss(layer(corrupt(codes)), codes)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"layer {depth} pretrained: reconstruction of its input {loss.item():.4f}")

print(f"stack after pretraining: {test_error(model, test_x):.4f}")

optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(FINETUNE_EPOCHS):
    for idx in torch.randperm(len(train_x)).split(BATCH):
        loss = F.mse_loss(model(train_x[idx]), train_x[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

print(f"stack after fine-tuning: {test_error(model, test_x):.4f}")
