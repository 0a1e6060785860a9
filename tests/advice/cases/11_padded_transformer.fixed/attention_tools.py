"""Masks used by the attention layers."""
import torch


def length_mask(lengths, size):
    return torch.arange(size)[None, :] >= lengths[:, None]


def hide_padding(weights, padding):
    blocked = padding[:, None, None, :]
    return weights.masked_fill(blocked, 0.0)
