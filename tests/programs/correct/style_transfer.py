"""Style transfer: frozen features, an image that is optimised and clamped after every step."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(9)
backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 6, 3)).eval()
backbone.requires_grad_(False)


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)
content_features, style_gram = backbone(content), gram(backbone(style))
image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.05)
for _ in range(3):
    features = backbone(image)
    loss = F.mse_loss(features, content_features) + F.mse_loss(gram(features), style_gram)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
print(image.detach().numpy().shape)
