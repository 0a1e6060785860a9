"""Fine-tuning a lesion classifier so that it looks at the lesion: input gradients outside the annotation are penalised."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 16


def make_patches(n, generator, marker):
    """Bright or ringed lesions at random places; `marker` is how often the ruler at the border agrees with the label."""
    labels = torch.randint(0, 2, (n,), generator=generator)
    grid = torch.arange(SIZE, dtype=torch.float32)
    images = 0.4 * torch.randn(n, 1, SIZE, SIZE, generator=generator)
    masks = torch.zeros(n, 1, SIZE, SIZE)
    agrees = torch.rand(n, generator=generator) < marker
    for i in range(n):
        cy, cx = (torch.rand(2, generator=generator) * (SIZE - 9) + 5).tolist()
        distance = ((grid[:, None] - cy) ** 2 + (grid[None, :] - cx) ** 2).sqrt()
        lesion = (distance < 3.2).float()
        if labels[i] == 1:
            lesion = lesion * (distance > 1.6)
        images[i, 0] += 0.9 * lesion
        masks[i, 0] = (distance < 4.2).float()
        ruler = labels[i] if agrees[i] else 1 - labels[i]
        images[i, 0, 0, 1:-1:2] += 2.0 if ruler == 1 else -2.0
    masks[:, :, 0] = 0
    return images, labels, masks


class Encoder(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1),
            nn.ReLU(),
        )

    def forward(self, x):
        return self.body(x).amax(dim=(2, 3))


def pretrain(encoder, generator, steps=60):
    """Stand-in for public weights: the encoder tells clean lesions from noise."""
    probe = nn.Linear(32, 2)
    optimizer = torch.optim.Adam([*encoder.parameters(), *probe.parameters()], lr=2e-3)
    images, _, _ = make_patches(192, generator, marker=0.5)
    images[:, :, 0] = 0.4 * torch.randn(len(images), 1, SIZE, generator=generator)
    images = torch.cat([images, 0.4 * torch.randn(192, 1, SIZE, SIZE, generator=generator)])
    labels = torch.cat([torch.ones(192), torch.zeros(192)]).long()
    for _ in range(steps):
        pick = torch.randint(0, len(images), (32,))
        loss = F.cross_entropy(probe(encoder(images[pick])), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining loss {loss.item():.3f}")


class FocusLoss(nn.Module):
    def __init__(self, strength):
        super().__init__()
        self.strength = strength

    def forward(self, model, images, labels, masks):
        images = images.clone().requires_grad_(True)
        log_probs = F.log_softmax(model(images), dim=1)
        answer = F.nll_loss(log_probs, labels)
        (slopes,) = torch.autograd.grad(log_probs.sum(), images, retain_graph=True)
        outside = (slopes * (1 - masks)).pow(2).sum(dim=(1, 2, 3)).mean()
        return answer + self.strength * outside, answer, outside


@torch.no_grad()
def accuracy(model, images, labels):
    return (model(images).argmax(1) == labels).float().mean().item()


def finetune(model, images, labels, masks, strength=2.0, steps=120, batch=32):
    criterion = FocusLoss(strength)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(steps):
        pick = torch.randint(0, len(images), (batch,))
        loss, answer, outside = criterion(model, images[pick], labels[pick], masks[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  cross entropy {answer.item():.3f}  outside {outside.item():.4f}")


torch.manual_seed(2)
generator = torch.Generator().manual_seed(17)
encoder = Encoder()
pretrain(encoder, generator)
model = nn.Sequential(encoder, nn.Linear(32, 2))
finetune(model, *make_patches(320, generator, marker=1.0))
same_images, same_labels, _ = make_patches(200, generator, marker=1.0)
free_images, free_labels, _ = make_patches(200, generator, marker=0.5)
print(f"test accuracy, same clinic   {accuracy(model, same_images, same_labels):.3f}")
print(f"test accuracy, other clinics {accuracy(model, free_images, free_labels):.3f}")
