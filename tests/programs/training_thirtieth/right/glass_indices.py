"""Compresses the spectra of glasses with an autoencoder; each parameter is updated as soon as its gradient is there."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BANDS = 40
CODE = 6
STEPS = 250


def make_glasses(n, mixing):
    oxides = torch.softmax(2.0 * torch.randn(n, CODE), dim=1)
    return torch.tanh(oxides @ mixing) + 0.02 * torch.randn(n, BANDS)


class GlassCoder(nn.Module):
    """The way back uses the transposed matrices of the way in."""

    def __init__(self, width=32):
        super().__init__()
        self.first = nn.Parameter(torch.empty(width, BANDS))
        self.second = nn.Parameter(torch.empty(CODE, width))
        nn.init.orthogonal_(self.first)
        nn.init.orthogonal_(self.second)
        self.bias_in = nn.Parameter(torch.zeros(width))
        self.bias_back = nn.Parameter(torch.zeros(width))
        self.bias_out = nn.Parameter(torch.zeros(BANDS))

    def encode(self, x):
        return F.linear(F.elu(F.linear(x, self.first, self.bias_in)), self.second)

    def decode(self, code):
        return F.linear(F.elu(F.linear(code, self.second.t(), self.bias_back)), self.first.t(), self.bias_out)

    def forward(self, x):
        return self.decode(self.encode(x))


class BackwardStepper:
    """One small optimizer and one clipping a parameter, run from inside backward so that no gradient outlives its use."""

    def __init__(self, model, lr, clip):
        self.base_lr = lr
        self.clip = clip
        self.optimizers = {p: torch.optim.Adam([p], lr=lr) for p in model.parameters()}
        self.handles = [p.register_post_accumulate_grad_hook(self.on_gradient) for p in model.parameters()]

    @torch.no_grad()
    def on_gradient(self, p):
        norm = p.grad.norm()
        if norm > self.clip:
            p.grad.mul_(self.clip / norm)
        self.optimizers[p].step()
        self.optimizers[p].zero_grad()

    def set_lr(self, factor):
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = self.base_lr * factor


def factor_at(step, warmup=15):
    if step < warmup:
        return (step + 1) / warmup
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * (step - warmup) / (STEPS - warmup)))


@torch.no_grad()
def explained(model, glasses):
    rest = (model(glasses) - glasses).pow(2).sum()
    return 1.0 - (rest / (glasses - glasses.mean(dim=0)).pow(2).sum()).item()


def train(model, glasses, stepper, batch_size=64):
    losses = []
    for step in range(STEPS):
        stepper.set_lr(factor_at(step))
        batch = glasses[torch.randint(0, len(glasses), (batch_size,))]
        loss = F.mse_loss(model(batch), batch)
        loss.backward()
        losses.append(loss.item())
        if (step + 1) % 50 == 0:
            print(f"step {step + 1:4d}  loss {sum(losses[-50:]) / 50:.5f}")
    return losses


def main():
    torch.manual_seed(41)
    mixing = 1.5 * torch.randn(CODE, BANDS)
    glasses, test = make_glasses(1500, mixing), make_glasses(400, mixing)
    model = GlassCoder()
    stepper = BackwardStepper(model, lr=3e-3, clip=1.0)
    losses = train(model, glasses, stepper)
    print(f"variance explained on the test glasses {explained(model, test):.4f}")
    return model, stepper, losses, glasses, test


if __name__ == "__main__":
    model, stepper, losses, glasses, test = main()
