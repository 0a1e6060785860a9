"""Binary segmentation with the Lovasz hinge; evaluation uses an exponential average of the weights."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
SIZE = 20


def make_scenes(n):
    """Small ellipses on a textured background; the mask is the ellipse."""
    ys, xs = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    cy, cx = (5 + 10 * torch.rand(2, n, 1, 1)).unbind(0)
    ry, rx = (2 + 3 * torch.rand(2, n, 1, 1)).unbind(0)
    mask = (((ys - cy) / ry) ** 2 + ((xs - cx) / rx) ** 2 < 1).float()
    wave = 0.4 * torch.sin(0.8 * xs + 6.28 * torch.rand(n, 1, 1))
    image = 0.7 * mask + wave + 0.25 * torch.randn(n, SIZE, SIZE)
    return image[:, None], mask


class SmallUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enter = self.block(1, width)
        self.down = self.block(width, 2 * width)
        self.up = self.block(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs),
                             nn.ReLU(inplace=True))

    def forward(self, x):
        fine = self.enter(x)
        coarse = self.down(F.avg_pool2d(fine, 2))
        coarse = F.interpolate(coarse, scale_factor=2, mode="nearest")
        return self.out(self.up(torch.cat([fine, coarse], dim=1))).squeeze(1)


@torch.no_grad()
def lovasz_gradient(truth_sorted):
    """Gradient of the Lovasz extension of the Jaccard loss with respect to the sorted errors."""
    total = truth_sorted.sum()
    intersection = total - truth_sorted.cumsum(0)
    union = total + (1 - truth_sorted).cumsum(0)
    jaccard = 1 - intersection / union
    jaccard[1:] = jaccard[1:] - jaccard[:-1].clone()
    return jaccard


def lovasz_hinge(logits, masks):
    parts = []
    for logit, mask in zip(logits.flatten(1), masks.flatten(1)):
        errors = 1 - logit * (2 * mask - 1)
        errors_sorted, order = errors.sort(descending=True)
        parts.append(F.relu(errors_sorted).dot(lovasz_gradient(mask[order.data])))
    return torch.stack(parts).mean()


class WeightAverage:
    """Keeps an exponential average of the parameters; can be put into the model for a while."""

    def __init__(self, model, decay=0.95):
        self.decay = decay
        self.params = list(model.parameters())
        self.average = [p.detach().clone() for p in self.params]
        self.saved = None

    @torch.no_grad()
    def update(self):
        for a, p in zip(self.average, self.params):
            a.lerp_(p, 1 - self.decay)

    def __enter__(self):
        self.saved = [p.detach().clone() for p in self.params]
        for p, a in zip(self.params, self.average):
            p.data.copy_(a)

    def __exit__(self, *_):
        for p, s in zip(self.params, self.saved):
            p.data.copy_(s)
        self.saved = None


@torch.no_grad()
def mean_overlap(model, images, masks):
    predicted = (model(images) > 0).float()
    inter = (predicted * masks).sum(dim=(1, 2))
    union = (predicted + masks).clamp(max=1).sum(dim=(1, 2))
    return (inter / union.clamp(min=1)).mean().item()


def main(steps=120, batch=8):
    model = SmallUNet()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    average = WeightAverage(model)
    test = make_scenes(120)
    for step in range(steps):
        images, masks = make_scenes(batch)
        logits = model(images)
        warm = max(0.0, 1 - step / 60)
        entropy = F.binary_cross_entropy_with_logits(logits, masks)
        hinge = lovasz_hinge(logits, masks)
        loss = warm * entropy + (1 - 0.9 * warm) * hinge
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        average.update()
        if step % 30 == 29:
            plain = mean_overlap(model, *test)
            with average:
                smooth = mean_overlap(model, *test)
            print(f"step {step + 1:3d}  BCE {entropy.item():.3f}  Lovasz {hinge.item():.3f}  "
                  f"IoU {plain:.3f}  IoU of the average {smooth:.3f}")
    return model, average, optimizer, test


if __name__ == "__main__":
    model, average, optimizer, test = main()
