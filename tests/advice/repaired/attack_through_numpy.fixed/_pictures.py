"""Helpers for pictures, which use NumPy."""

import numpy as np
import torch


def to_array(images):
    return images.detach().numpy()  # role: graph_cut_here


def jitter(images, amount=0.01):
    ramp = torch.linspace(-amount, amount, images.shape[-1])
    return (images + ramp).clamp(0.0, 1.0)
