"""Fast gradient attack on a small classifier."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SmallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(36, 24)
        self.fc2 = nn.Linear(24, 4)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Attack:
    def __init__(self, model, eps=0.1, mean=0.5, std=0.25):
        self.model, self.eps, self.mean, self.std = model, eps, mean, std

    def prepare(self, images):
        images = images.clone().requires_grad_(True)
        return (images - self.mean) / self.std

    def run(self, images, labels):
        inputs = self.prepare(images)
        inputs.retain_grad()
        loss = F.cross_entropy(self.model(inputs), labels)
        self.model.zero_grad()
        loss.backward()
        step = inputs.grad.sign()
        return (inputs + self.eps * step / self.std).detach()


def robust_accuracy(model, batches):
    attack, hits, seen = Attack(model), 0, 0
    for images, labels in batches:
        adversarial = attack.run(images, labels)
        hits += (model(adversarial).argmax(1) == labels).sum().item()
        seen += labels.numel()
    return hits / seen


if __name__ == "__main__":
    torch.manual_seed(34)
    model = SmallNet().eval()
    print(robust_accuracy(model, [(torch.rand(5, 1, 6, 6), torch.randint(0, 4, (5,))) for _ in range(2)]))
