"""Segmentation of bright round cells in noisy images, with cross entropy plus a small Dice term.

The Dice term has its derivative written out, which saves the intermediate maps of the automatic one.
"""
import torch
import torch.nn.functional as F
from torch import nn

SIZE = 24
BATCH = 6
ACCUMULATE = 3
UPDATES = 48
DICE_WEIGHT = 0.1
SMOOTH = 1.0


def make_images(count):
    """Images with one to three cells, and their masks."""
    axis = torch.arange(SIZE, dtype=torch.float32)
    rows, cols = torch.meshgrid(axis, axis, indexing="ij")
    masks = torch.zeros(count, SIZE, SIZE)
    for i in range(count):
        for _ in range(int(torch.randint(1, 4, ()))):
            centre = 4 + (SIZE - 8) * torch.rand(2)
            radius = 2.0 + 2.0 * torch.rand(())
            inside = (rows - centre[0]) ** 2 + (cols - centre[1]) ** 2 < radius**2
            masks[i] = torch.maximum(masks[i], inside.float())
    images = 0.9 * masks + 0.6 * torch.randn(count, SIZE, SIZE)
    return images.unsqueeze(1), masks.unsqueeze(1)


class SoftDice(torch.autograd.Function):
    """One minus the soft Dice coefficient of the predicted probabilities, averaged over the images."""

    @staticmethod
    def forward(ctx, logits, target):
        probs = torch.sigmoid(logits)
        overlap = (probs * target).sum(dim=(1, 2, 3), keepdim=True)
        total = (probs + target).sum(dim=(1, 2, 3), keepdim=True)
        ctx.save_for_backward(probs, target, overlap, total)
        dice = (2.0 * overlap + SMOOTH) / (total + SMOOTH)
        return (1.0 - dice).mean()

    @staticmethod
    def backward(ctx, grad_output):
        probs, target, overlap, total = ctx.saved_tensors
        upper = 2.0 * overlap + SMOOTH
        lower = total + SMOOTH
        grad_probs = -(2.0 * target * lower - upper) / lower**2
        grad_probs = grad_probs / probs.shape[0]
        grad_logits = grad_probs * probs * (1.0 - probs)
        return grad_logits, None


class Segmenter(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
        )
        self.out = nn.Conv2d(channels, 1, 1)

    def forward(self, images):
        return self.out(self.body(images))


def compute_loss(logits, masks):
    entropy = F.binary_cross_entropy_with_logits(logits, masks)
    dice = SoftDice.apply(logits, masks)
    return entropy + DICE_WEIGHT * dice, entropy, dice


def evaluate(model, images, masks):
    model.eval()
    with torch.no_grad():
        logits = model(images)
        _, entropy, dice = compute_loss(logits, masks)
        accuracy = ((logits > 0) == (masks > 0.5)).float().mean()
    model.train()
    return entropy.item(), dice.item(), accuracy.item()


torch.manual_seed(11)
train_images, train_masks = make_images(90)
test_images, test_masks = make_images(30)

model = Segmenter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

for update in range(UPDATES):
    optimizer.zero_grad()
    for _ in range(ACCUMULATE):
        index = torch.randint(0, len(train_images), (BATCH,))
        loss, _, _ = compute_loss(model(train_images[index]), train_masks[index])
        (loss / ACCUMULATE).backward()
    optimizer.step()
    if (update + 1) % 12 == 0:
        entropy, dice, accuracy = evaluate(model, test_images, test_masks)
        print(f"update {update + 1:3d}  entropy {entropy:.4f}  dice loss {dice:.4f}  pixels right {accuracy:.4f}")

with torch.no_grad():
    predicted = torch.sigmoid(model(test_images))
print(f"area predicted {predicted.mean().item():.4f}, area of the masks {test_masks.mean().item():.4f}")
