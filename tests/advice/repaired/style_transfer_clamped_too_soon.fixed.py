"""expect: saved-tensor-modified-inplace

The image of a style transfer is clamped after its losses are computed and before they are differentiated.
"""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(7)
backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3)).eval().requires_grad_(False)


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


def clamp_to_picture(image):
    with torch.no_grad():
        image.clamp_(0, 1)  # role: modified_here


content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
style_gram = gram(backbone(style))
image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.05)

for step in range(3):
    style_loss = F.mse_loss(gram(backbone(image)), style_gram)
    content_loss = F.mse_loss(image, content)  # role: saved_here
    loss = content_loss + 10 * style_loss
    optimizer.zero_grad()
    loss.backward()  # role: needed_here
    clamp_to_picture(image)
    optimizer.step()
