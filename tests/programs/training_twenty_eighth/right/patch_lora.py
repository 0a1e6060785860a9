"""LoRA on the convolutions and the head of a pretrained encoder, with merging for evaluation and adapter-only checkpoints."""
import copy
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16


def gratings(n, generator, angles, frequency):
    labels = torch.randint(0, len(angles), (n,), generator=generator)
    angle = torch.tensor(angles)[labels].view(-1, 1, 1)
    axis = torch.arange(SIZE, dtype=torch.float32)
    phase = 6.28 * torch.rand(n, 1, 1, generator=generator)
    wave = torch.cos(frequency * (axis[:, None] * angle.sin() + axis[None, :] * angle.cos()) + phase)
    return (wave + 0.5 * torch.randn(n, SIZE, SIZE, generator=generator))[:, None], labels


class Encoder(nn.Module):
    def __init__(self, classes, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 5, padding=2)
        self.conv1 = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = F.relu(self.conv1(F.relu(self.stem(x))))
        return self.head(F.relu(self.conv2(x)).mean(dim=(2, 3)))


class LoRAConv(nn.Module):
    def __init__(self, conv, rank=4, alpha=8.0):
        super().__init__()
        self.conv = conv
        size = conv.kernel_size[0]
        self.lora_a = nn.Parameter(conv.weight.new_empty(rank * size, conv.in_channels * size))
        self.lora_b = nn.Parameter(conv.weight.new_zeros(conv.out_channels * size, rank * size))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        self.scaling = alpha / rank
        self.merged = False
        self.conv.weight.requires_grad = False

    def delta(self):
        return (self.lora_b @ self.lora_a).view(self.conv.weight.shape) * self.scaling

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.conv.weight.data -= self.delta().detach()
            self.merged = False
        elif not mode and not self.merged:
            self.conv.weight.data += self.delta().detach()
            self.merged = True
        return self

    def forward(self, x):
        if self.merged:
            return self.conv(x)
        weight = self.conv.weight + self.delta()
        return self.conv._conv_forward(x, weight, self.conv.bias)


def adapter_state(model):
    return {k: v for k, v in model.state_dict().items() if "lora_" in k or k.startswith("head.")}


@torch.no_grad()
def accuracy(model, data):
    model.eval()
    images, labels = data
    return (model(images).argmax(1) == labels).float().mean().item()


def fit(model, train_set, test_set, epochs, lr, batch=32):
    images, labels = train_set
    optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=lr)
    best, saved = 0.0, None
    for epoch in range(epochs):
        model.train()
        for pick in torch.randperm(len(images)).split(batch):
            loss = F.cross_entropy(model(images[pick]), labels[pick])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        fitted, held_out = accuracy(model, train_set), accuracy(model, test_set)
        print(f"epoch {epoch + 1}  loss {loss.item():.3f}  train {fitted:.3f}  test {held_out:.3f}")
        if held_out >= best:
            best, saved = held_out, io.BytesIO()
            torch.save(adapter_state(model), saved)
    return best, saved


def adapt(pretrained, classes):
    model = copy.deepcopy(pretrained)
    for parameter in model.parameters():
        parameter.requires_grad = False
    model.conv1, model.conv2 = LoRAConv(model.conv1), LoRAConv(model.conv2)
    model.head = nn.Linear(model.head.in_features, classes)
    return model


torch.manual_seed(12)
generator = torch.Generator().manual_seed(7)
old, new = [0.0, 0.8, 1.6, 2.4], [0.3, 0.9, 1.5, 2.1, 2.7]
pretrained = Encoder(len(old))
fit(pretrained, gratings(384, generator, old, 0.9), gratings(128, generator, old, 0.9), epochs=3, lr=3e-3)
train_set, test_set = gratings(384, generator, new, 1.4), gratings(128, generator, new, 1.4)
model = adapt(pretrained, len(new))
best, saved = fit(model, train_set, test_set, epochs=6, lr=5e-3)
saved.seek(0)
restored = adapt(pretrained, len(new))
missing, unexpected = restored.load_state_dict(torch.load(saved), strict=False)
print(f"best {best:.3f}  restored {accuracy(restored, test_set):.3f}  unexpected keys {len(unexpected)}")
