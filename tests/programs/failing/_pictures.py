"""Helpers for pictures, which use NumPy."""

import numpy as np
import torch


def to_array(images):
    return images.detach().numpy()  # role: graph_cut_here


def jitter(images, amount=0.01):
    array = to_array(images)
    ramp = np.linspace(-amount, amount, array.shape[-1], dtype=array.dtype)
    return torch.from_numpy(np.clip(array + ramp, 0.0, 1.0))
