import torch
import torch.nn.functional as F
from torch import nn


class Acoustic(nn.Module):
    def __init__(self, width, phones=8):
        super().__init__()
        self.conv = nn.Conv1d(16, width, 5, padding=2)
        self.mix = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Conv1d(width, phones, 1)

    def features(self, x):
        return F.relu(self.mix(F.relu(self.conv(x))))

    def forward(self, x):
        z = self.features(x)
        return z, self.out(z)


class JointDistiller:
    def __init__(self, temperature=2.0, hint=3.0):
        self.large = Acoustic(40)
        self.small = Acoustic(8)
        self.bridge = nn.Conv1d(8, 40, 1)
        self.temperature, self.hint = temperature, hint
        self.opts = [
            torch.optim.Adam(self.large.parameters(), lr=2e-3),
            torch.optim.Adam([*self.small.parameters(), *self.bridge.parameters()], lr=4e-3),
        ]

    def losses(self, x, phones):
        z_large, y_large = self.large(x)
        z_small, y_small = self.small(x)
        yield F.cross_entropy(y_large, phones)
        yield F.cross_entropy(y_small, phones)
        yield self.hint * F.mse_loss(self.bridge(z_small), z_large.detach())
        soft = F.softmax(y_large.detach() / self.temperature, dim=1)
        yield F.kl_div(F.log_softmax(y_small / self.temperature, dim=1), soft, reduction="none").sum(1).mean()

    def step(self, x, phones):
        parts = list(self.losses(x, phones))
        for opt in self.opts:
            opt.zero_grad()
        sum(parts).backward()
        for opt in self.opts:
            opt.step()
        return [p.item() for p in parts]


def utterances(n, gen, voices):
    segments = torch.randint(8, (n, 6), generator=gen)
    phones = segments.repeat_interleave(5, dim=1)
    x = voices[phones].transpose(1, 2)
    return x + 1.3 * torch.randn(x.shape, generator=gen), phones


def main():
    torch.manual_seed(181)
    gen = torch.Generator().manual_seed(64)
    voices = torch.randn(8, 16, generator=gen) * 0.8
    joint = JointDistiller()
    for step in range(160):
        parts = joint.step(*utterances(16, gen, voices))
        if step % 40 == 39:
            print(f"step {step + 1:3d}  large {parts[0]:.4f}  small {parts[1]:.4f}  hint {parts[2]:.4f}")
    x, phones = utterances(200, gen, voices)
    with torch.no_grad():
        for name in ("large", "small"):
            hit = (getattr(joint, name)(x)[1].argmax(1) == phones).float().mean()
            print(f"{name} frame accuracy {hit:.4f}")


if __name__ == "__main__":
    main()
