"""Regularisers for critics."""
import torch


def slope_penalty(critic, real, fake):
    mix = torch.rand(real.size(0), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(between)
    slope = torch.autograd.grad(scores.sum(), between, create_graph=True)[0]
    return (slope.norm(2, dim=1) - 1).pow(2).mean()
