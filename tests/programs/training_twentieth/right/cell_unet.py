"""Small U-Net for segmenting bright cells; images of different sizes, so that every forward pass
takes one image and the gradients of several images are collected before a step."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)

GROUP = 6
EPOCHS = 5
SIZES = [24, 32, 40]


def make_image():
    side = SIZES[int(torch.randint(len(SIZES), (1,)))]
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    image, mask = 0.5 * torch.randn(side, side), torch.zeros(side, side)
    for _ in range(int(torch.randint(1, 4, (1,)))):
        cy, cx = torch.randint(4, side - 4, (2,)).tolist()
        radius = 3 + 2 * torch.rand(1).item()
        cell = (yy - cy) ** 2 + (xx - cx) ** 2 < radius ** 2
        image[cell] += 0.9
        mask[cell] = 1.0
    return image[None, None], mask[None, None]


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down1 = double_conv(1, width)
        self.down2 = double_conv(width, 2 * width)
        self.bottom = double_conv(2 * width, 4 * width)
        self.up2 = double_conv(6 * width, 2 * width)
        self.up1 = double_conv(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], dim=1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], dim=1))
        return self.out(a)


def dice(logits, mask):
    guess = (logits > 0).float()
    return (2 * (guess * mask).sum() / (guess.sum() + mask.sum()).clamp(min=1)).item()


train_set = [make_image() for _ in range(82)]
test_set = [make_image() for _ in range(30)]

model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(EPOCHS):
    model.train()
    order = torch.randperm(len(train_set)).tolist()
    epoch_loss, epoch_pixels = 0.0, 0
    for start in range(0, len(order), GROUP):
        group = [train_set[i] for i in order[start:start + GROUP]]
        for image, mask in group:
            # summed over the pixels; all sums are divided together below
            loss = F.binary_cross_entropy_with_logits(model(image), mask, reduction="sum")
            loss.backward()
            epoch_loss += loss.item()
        pixels = sum(mask.numel() for _, mask in group)
        for p in model.parameters():
            p.grad /= pixels
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        epoch_pixels += pixels
    print(f"epoch {epoch + 1}: loss per pixel {epoch_loss / epoch_pixels:.4f}")

model.eval()
with torch.no_grad():
    scores = [dice(model(image), mask) for image, mask in test_set]
print(f"mean Dice on {len(scores)} test images: {sum(scores) / len(scores):.3f}")
