"""Momentum contrast (MoCo v2) on synthetic patches, followed with a k-nearest-neighbour check of the representation."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(3)
SIZE, CLASSES, NOISE = 16, 6, 0.8


def make_patches(n):
    """Two crossed gratings; the pair of orientations is the class, phase, contrast and offset are nuisance."""
    label = torch.randint(0, CLASSES, (n,))
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    image = torch.zeros(n, SIZE, SIZE)
    for shift in (0.0, 1.3):
        angle = (label * 3.1416 / CLASSES + shift)[:, None, None]
        phase = torch.rand(n, 1, 1) * 6.283
        image += torch.sin(1.1 * (xs * torch.cos(angle) + ys * torch.sin(angle)) + phase)
    contrast = 0.4 + torch.rand(n, 1, 1)
    return (image * contrast + 0.3 * torch.randn(n, 1, 1) + NOISE * torch.randn(n, SIZE, SIZE))[:, None], label


def augment(x):
    n = len(x)
    gain = 0.6 + 0.8 * torch.rand(n, 1, 1, 1)
    shifts = torch.randint(-4, 5, (2,)).tolist()
    x = torch.roll(x, shifts=shifts, dims=(2, 3))
    return x * gain + 0.2 * torch.randn(n, 1, 1, 1) + 0.3 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, width=12, dim=24, out=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 5, stride=2, padding=2, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, dim, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(dim)
        self.projector = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, out, bias=False),
                                       nn.BatchNorm1d(out))

    def represent(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        return x.mean(dim=(2, 3))

    def forward(self, x):
        return F.normalize(self.projector(self.represent(x)), dim=1)


class MoCo(nn.Module):
    def __init__(self, queue_size=64, momentum=0.99, temperature=0.1, dim=16):
        super().__init__()
        self.momentum, self.temperature = momentum, temperature
        self.encoder_q = Encoder(out=dim)
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(queue_size, dim), dim=1))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def update_keys(self):
        for q, k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            k.data = k.data * self.momentum + q.data * (1.0 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.pointer)
        self.queue[start:start + len(keys)] = keys
        self.pointer.fill_((start + len(keys)) % len(self.queue))

    def forward(self, view_q, view_k):
        q = self.encoder_q(view_q)
        with torch.no_grad():
            self.update_keys()
            k = self.encoder_k(view_k)
        positive = (q * k).sum(dim=1, keepdim=True)
        negative = q @ self.queue.clone().detach().t()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


@torch.no_grad()
def neighbour_accuracy(encoder, bank, bank_labels, images, labels, k=7):
    was_training = encoder.training
    encoder.eval()
    a = F.normalize(encoder.represent(bank), dim=1)
    b = F.normalize(encoder.represent(images), dim=1)
    votes = bank_labels[(b @ a.t()).topk(k, dim=1).indices]
    encoder.train(was_training)
    return (votes.mode(dim=1).values == labels).float().mean().item()


def main(steps=160, batch=32):
    model = MoCo()
    optimizer = torch.optim.AdamW(model.encoder_q.parameters(), lr=3e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    check = make_patches(300) + make_patches(150)
    print(f"kNN before training {neighbour_accuracy(model.encoder_q, *check):.3f}")
    running = 0.0
    for step in range(steps):
        images, _ = make_patches(batch)
        loss = model(augment(images), augment(images))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.detach()
        if step % 40 == 39:
            score = neighbour_accuracy(model.encoder_q, *check)
            print(f"step {step + 1:3d}  InfoNCE {running.item() / 40:.3f}  kNN {score:.3f}")
            running = 0.0
    return model, optimizer, check


if __name__ == "__main__":
    model, optimizer, check = main()
