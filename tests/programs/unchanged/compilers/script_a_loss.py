"""TorchScript knows `warnings.warn`, which the loss functions call, by identity."""

import warnings

import torch
import torch.nn.functional as F


@torch.jit.script
def loss(prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(prediction, target, reduction="none").sum() + F.mse_loss(
        prediction, target
    )


@torch.jit.script
def warned(x: torch.Tensor) -> torch.Tensor:
    warnings.warn("seen")
    return x * 2


x = torch.ones(3, requires_grad=True)
loss(x, torch.zeros(3)).backward()
print(x.grad, warned(x))
