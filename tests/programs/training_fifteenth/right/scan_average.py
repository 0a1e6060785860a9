"""Scan-slice segmentation: tail-averaged weights with the batch statistics measured again at the end."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 47
SIZE = 16
TAIL_START = 8


def slices(n, rng):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.uniform(4, 12, (2, n, 1, 1))
    r = rng.uniform(2, 5, (n, 1, 1))
    mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r**2).astype(np.float32)
    shade = rng.uniform(0.8, 1.6, (n, 1, 1))
    tilt = rng.uniform(-0.1, 0.1, (n, 1, 1)) * (xx - 8)
    image = shade * mask + tilt + 0.7 * rng.standard_normal(mask.shape)
    return torch.tensor(image[:, None].astype(np.float32)), torch.tensor(mask[:, None])


def conv(n_in, n_out):
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU())


def segmenter(width=8):
    return nn.Sequential(conv(1, width), conv(width, width), conv(width, width), nn.Conv2d(width, 1, 1))


class TailAverage:
    """Equal-weight mean of the parameters over the last epochs."""

    def __init__(self, model):
        self.model = copy.deepcopy(model)
        self.count = 0

    @torch.no_grad()
    def add(self, model):
        self.count += 1
        for avg, p in zip(self.model.parameters(), model.parameters()):
            avg.lerp_(p, 1.0 / self.count)

    @torch.no_grad()
    def measure_statistics(self, images, batch=100):
        norms = [m for m in self.model.modules() if isinstance(m, nn.BatchNorm2d)]
        old = [m.momentum for m in norms]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None  # plain mean over the batches
        self.model.train()
        for part in images.split(batch):
            self.model(part)
        for m, value in zip(norms, old):
            m.momentum = value
        self.model.eval()


@torch.no_grad()
def dice(model, images, masks):
    model.eval()
    pred = (model(images) > 0).float()
    overlap = (pred * masks).sum((1, 2, 3))
    return ((2 * overlap + 1) / (pred.sum((1, 2, 3)) + masks.sum((1, 2, 3)) + 1)).mean().item()


def train(model, images, masks, epochs=16):
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-4)
    average = TailAverage(model)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(images)).split(25):
            loss = F.binary_cross_entropy_with_logits(model(images[idx]), masks[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if epoch >= TAIL_START:
            average.add(model)
        if epoch % 4 == 3:
            print(f"epoch {epoch:2d}  loss {loss.item():.4f}  averaged {average.count}")
    average.measure_statistics(images)
    return average.model


def main():
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    images, masks = slices(600, rng)
    test_images, test_masks = slices(500, rng)
    model = segmenter()
    averaged = train(model, images, masks)
    last, tail = dice(model, test_images, test_masks), dice(averaged, test_images, test_masks)
    print(f"test dice: last weights {last:.4f}  tail average {tail:.4f}")


if __name__ == "__main__":
    main()
