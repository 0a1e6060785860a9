"""Constraints on network weights."""
import torch


@torch.no_grad()
def keep_within(module, bound):
    for p in module.parameters():
        p.clamp_(-bound, bound)


def accumulate(loss):
    loss.backward()
    return loss.item()
