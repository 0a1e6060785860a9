"""Lesion segmentation: soft Dice is optimised, the thresholded Dice is only a reported score."""
import torch
from torch import nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(11)


def lesions(count, side=20):
    grid = torch.arange(side).float()
    cy, cx = torch.rand(2, count, 1, 1) * (side - 8) + 4
    ry, rx = torch.rand(2, count, 1, 1) * 2 + 1.5
    mask = (((grid[:, None] - cy) / ry) ** 2 + ((grid - cx) / rx) ** 2 <= 1).float()
    image = mask + 0.5 * torch.randn(count, side, side)
    return image[:, None], mask[:, None]


def overlap(prob, mask):
    inter = (prob * mask).sum(dim=(1, 2, 3))
    size = prob.sum(dim=(1, 2, 3)) + mask.sum(dim=(1, 2, 3))
    return ((2 * inter + 1) / (size + 1)).mean()


class SegLoss(nn.Module):
    def __init__(self, dice_weight=0.7):
        super().__init__()
        self.dice_weight = dice_weight
        self.last = {}

    def forward(self, logits, mask):
        prob = logits.sigmoid()
        soft = 1 - overlap(prob, mask)
        bce = F.binary_cross_entropy_with_logits(logits, mask)
        hard = overlap((prob > 0.5).float(), mask)  # for the log only
        self.last = {"bce": bce.item(), "soft": soft.item(), "hard": hard.item()}
        return self.dice_weight * soft + (1 - self.dice_weight) * bce


net = nn.Sequential(
    nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(),
    nn.Conv2d(12, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(),
    nn.Conv2d(12, 1, 1),
)
criterion = SegLoss()
opt = torch.optim.AdamW(net.parameters(), lr=5e-3)
x_train, m_train = lesions(200)
x_test, m_test = lesions(60)

for epoch in range(7):
    net.train()
    hard_sum = batches = 0
    for idx in torch.randperm(len(x_train)).split(20):
        opt.zero_grad()
        loss = criterion(net(x_train[idx]), m_train[idx])
        loss.backward()
        opt.step()
        hard_sum += criterion.last["hard"]
        batches += 1
    net.eval()
    with torch.no_grad():
        test_dice = overlap((net(x_test) > 0).float(), m_test).item()
    print(f"epoch {epoch}: loss {loss.item():.3f}  train dice {hard_sum / batches:.3f}  test dice {test_dice:.3f}")

print("final test dice", round(test_dice, 3))
