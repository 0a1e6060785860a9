"""A model of room heating is adapted to a second building with low-rank adapters (Hu et al., 2021).

The weights of the first building stay as they are.  The adapters are folded into them for evaluation and taken out
again for training, so that the network is as fast as the first one when it is in use.
"""
import torch
import torch.nn.functional as F
from torch import nn

INPUTS = 10
BATCH = 64


class LowRankLinear(nn.Linear):
    def __init__(self, base, rank=4, alpha=8.0):
        super().__init__(base.in_features, base.out_features)
        self.weight, self.bias = base.weight, base.bias
        self.weight.requires_grad_(False)
        self.bias.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=5**0.5)
        self.scaling = alpha / rank
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.weight.data -= self.scaling * (self.lora_b @ self.lora_a).data
            self.merged = False
        elif not mode and not self.merged:
            self.weight.data += self.scaling * (self.lora_b @ self.lora_a).data
            self.merged = True
        return self

    def forward(self, x):
        out = F.linear(x, self.weight, self.bias)
        if not self.merged:
            out = out + self.scaling * F.linear(F.linear(x, self.lora_a), self.lora_b)
        return out


class Building:
    """Heat demand of a room as a smooth function of weather and use."""

    def __init__(self, mixing, slope):
        self.mixing, self.slope = mixing, slope

    def sample(self, count):
        x = torch.randn(count, INPUTS)
        hidden = torch.tanh(x @ self.mixing)
        return x, (hidden @ self.slope).unsqueeze(1) + 0.05 * torch.randn(count, 1)


def adapters(model):
    for name, module in list(model.named_children()):
        if isinstance(module, nn.Linear):
            setattr(model, name, LowRankLinear(module))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        error = F.mse_loss(model(x), y).item()
    model.train()
    return error


def fit(model, building, test, params, lr, steps):
    optimizer = torch.optim.Adam(params, lr=lr)
    model.train()
    for step in range(steps):
        x, y = building.sample(BATCH)
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"  step {step + 1:4d}  loss {loss.item():.4f}  test {evaluate(model, *test):.4f}")


torch.manual_seed(37)
mixing, slope = torch.randn(INPUTS, 6) / INPUTS**0.5, torch.randn(6)
first = Building(mixing, slope)
second = Building(mixing + 0.5 * torch.outer(torch.randn(INPUTS), torch.randn(6)) / INPUTS**0.5, slope)
test_first, test_second = first.sample(500), second.sample(500)

model = nn.Sequential(nn.Linear(INPUTS, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 1))
print("first building")
fit(model, first, test_first, model.parameters(), 5e-3, 200)
print(f"second building, not adapted: {evaluate(model, *test_second):.4f}")

adapters(model)
trained = [p for p in model.parameters() if p.requires_grad]
print(f"second building, {sum(p.numel() for p in trained)} weights in the adapters")
fit(model, second, test_second, trained, 5e-3, 200)
model.eval()
print(f"second building, adapted: {evaluate(model, *test_second):.4f}")
