"""expect: element-does-not-require-grad

An attack on a frozen classifier, whose pictures pass through a NumPy augmentation in another file.
"""

import torch
from _pictures import jitter
from torch import nn

torch.manual_seed(28)
classifier = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))
classifier.eval()
for parameter in classifier.parameters():
    parameter.requires_grad = False


def attack(images, labels, steps=3, size=0.05):
    noise = torch.zeros_like(images, requires_grad=True)  # role: leaf_made_here
    for _ in range(steps):
        shown = jitter(images + noise)
        loss = nn.functional.cross_entropy(classifier(shown), labels)
        loss.backward()  # role: needed_here
        with torch.no_grad():
            noise += size * noise.grad.sign()
            noise.grad.zero_()
    return images + noise


attack(torch.rand(2, 1, 6, 6), torch.tensor([0, 2]))
