"""Which of several instruments plays? A weight-normalized conv net on raw audio, with a Gabor filter bank in front."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm

RATE = 4000
CLIP = 1000
N_CLASSES = 6
N_FILTERS = 24
KERNEL = 101
STEPS = 60


def make_clips(n, generator):
    """Every instrument has its own pair of partials; pitch wobble, random phase and noise are added."""
    label = torch.randint(0, N_CLASSES, (n,), generator=generator)
    partial = torch.stack([300 + 130 * label.float(), 1150 + 70 * label.float()], 1)
    partial = partial * (1 + 0.02 * torch.randn(n, 1, generator=generator))
    phase = 2 * math.pi * torch.rand(n, 2, 1, generator=generator)
    time = torch.arange(CLIP) / RATE
    tone = torch.sin(2 * math.pi * partial.unsqueeze(-1) * time + phase).sum(1)
    clip = tone + 1.5 * torch.randn(n, CLIP, generator=generator)
    return clip.unsqueeze(1), label


def gabor_bank(n_filters, kernel, low=200.0, high=1600.0):
    """Windowed cosines, evenly spaced in frequency, each of unit energy."""
    centers = torch.linspace(low, high, n_filters).unsqueeze(1)
    time = (torch.arange(kernel) - kernel // 2) / RATE
    window = torch.hann_window(kernel, periodic=False)
    bank = torch.cos(2 * math.pi * centers * time) * window
    return F.normalize(bank, dim=1).unsqueeze(1)


def wn_conv(*args, **kwargs):
    return weight_norm(nn.Conv1d(*args, **kwargs))


class ToneNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.front = wn_conv(1, N_FILTERS, KERNEL, stride=10, bias=False)
        self.block = wn_conv(N_FILTERS, 24, 5, stride=2)
        self.head = nn.Linear(24, N_CLASSES)
        self.reset_parameters()

    def reset_parameters(self):
        """The first layer starts as a filter bank and is fine-tuned from there."""
        self.front.weight.data.copy_(gabor_bank(N_FILTERS, KERNEL))
        nn.init.zeros_(self.block.bias)

    def forward(self, clip):
        energy = torch.log1p(self.front(clip).pow(2))
        hidden = F.relu(self.block(energy))
        return self.head(hidden.mean(-1))


def make_optimizer(model):
    front = list(model.front.parameters())
    rest = [*model.block.parameters(), *model.head.parameters()]
    return torch.optim.AdamW(
        [{"params": front, "lr": 1e-3}, {"params": rest, "lr": 1e-2}],
        weight_decay=0.0,
    )


@torch.no_grad()
def accuracy(model, clips, labels):
    model.eval()
    hits = (model(clips).argmax(-1) == labels).float().mean().item()
    model.train()
    return hits


def main():
    torch.manual_seed(17)
    generator = torch.Generator().manual_seed(4)
    clips, labels = make_clips(400, generator)
    test_clips, test_labels = make_clips(300, generator)
    model = ToneNet()
    optimizer = make_optimizer(model)

    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(clips), (32,), generator=generator)
        loss = F.cross_entropy(model(clips[rows]), labels[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"step {step:3d}  loss {loss.item():.3f}  test accuracy {accuracy(model, test_clips, test_labels):.3f}")
    return model, accuracy(model, test_clips, test_labels)


if __name__ == "__main__":
    model, test_accuracy = main()
