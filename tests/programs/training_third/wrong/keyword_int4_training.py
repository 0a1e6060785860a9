import torch
import torch.nn as nn
import torch.nn.functional as F


def fake_quantize(x, step, low, high):
    q = torch.round(x / step).clamp(low, high) * step
    return x + (q - x).detach()


class LearnedStep(nn.Module):
    def __init__(self, bits, signed):
        super().__init__()
        self.low = -(2 ** (bits - 1)) if signed else 0
        self.high = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        self.log_step = nn.Parameter(torch.zeros(()))
        self.calibrated = False

    @torch.no_grad()
    def calibrate(self, x):
        spread = 2 * x.abs().mean() / self.high ** 0.5
        self.log_step.copy_(spread.clamp(min=1e-4).log())
        self.calibrated = True

    def forward(self, x):
        if not self.calibrated:
            self.calibrate(x)
        return fake_quantize(x, self.log_step.exp(), self.low, self.high)


class QuantLinear(nn.Linear):
    def __init__(self, n_in, n_out, bits=4, signed_input=False):
        super().__init__(n_in, n_out)
        self.weight_quant = LearnedStep(bits, signed=True)
        self.input_quant = LearnedStep(bits, signed=signed_input)

    def forward(self, x):
        return F.linear(self.input_quant(x), self.weight_quant(self.weight), self.bias)


class KeywordNet(nn.Module):
    def __init__(self, n_in=32, n_classes=5):
        super().__init__()
        self.fc1 = QuantLinear(n_in, 48, signed_input=True)
        self.fc2 = QuantLinear(48, 48)
        self.fc3 = QuantLinear(48, n_classes)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def make_optimizer(model):
    steps = [p for n, p in model.named_parameters() if n.endswith("log_step")]
    rest = [p for n, p in model.named_parameters() if not n.endswith("log_step")]
    return torch.optim.Adam([{"params": rest, "lr": 2e-3}, {"params": steps, "lr": 1e-2}])


def make_keywords(n=320, n_in=32):
    label = torch.randint(0, 5, (n,))
    templates = torch.randn(5, n_in)
    gain = 0.5 + 2 * torch.rand(n, 1)
    return gain * templates[label] + torch.randn(n, n_in), label


def main(epochs=6):
    torch.manual_seed(0)
    x, y = make_keywords()
    model = KeywordNet()
    with torch.no_grad():
        model(x[:64])
    optimizer = make_optimizer(model)
    for epoch in range(epochs):
        for idx in torch.randperm(256).split(32):
            loss = F.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            heldout = F.cross_entropy(model(x[256:]), y[256:])
        print(f"epoch {epoch} train {loss.item():.4f} heldout {heldout.item():.4f}")
    return model


if __name__ == "__main__":
    model = main()
