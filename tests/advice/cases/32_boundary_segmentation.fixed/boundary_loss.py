"""Penalises disagreement far from the object boundary."""
import numpy as np
import torch
import torch.nn as nn


def distance_field(mask):
    field = np.zeros_like(mask, dtype=np.float32)
    for i, item in enumerate(mask):
        inside = np.argwhere(item > 0.5)
        if len(inside) == 0:
            continue
        grid = np.stack(np.meshgrid(*map(np.arange, item.shape), indexing="ij"), -1)
        field[i] = np.sqrt(((grid[..., None, :] - inside) ** 2).sum(-1)).min(-1)
    return field


class BoundaryLoss(nn.Module):
    def forward(self, pred, target):
        soft = torch.sigmoid(pred).squeeze(1)
        pred_np = soft.detach().cpu().numpy()
        pred_field = torch.from_numpy(distance_field(pred_np))
        true_field = torch.from_numpy(distance_field(target.numpy()))
        mismatch = (soft - target) ** 2
        return (mismatch * (pred_field ** 2 + true_field ** 2)).mean()
