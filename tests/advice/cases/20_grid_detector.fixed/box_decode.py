"""Turns raw detector maps into boxes."""
import torch


def make_grid(height, width):
    ys, xs = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    return torch.stack([xs, ys], dim=-1).float()


def decode(raw, anchors, stride):
    batch, n_anchor, height, width, _ = raw.shape
    grid = make_grid(height, width).view(1, 1, height, width, 2)
    box = raw.sigmoid().clone()
    box[..., 0:2] = (box[..., 0:2] * 2.0 - 0.5 + grid) * stride
    box[..., 2:4] = (box[..., 2:4] * 2.0) ** 2 * anchors.view(1, n_anchor, 1, 1, 2)
    return box.reshape(batch, -1, box.size(-1))
