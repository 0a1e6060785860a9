import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, n_in, n_out, rank=2, alpha=4.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) / n_in**0.5, requires_grad=False)
        self.A = nn.Parameter(torch.randn(rank, n_in) / n_in**0.5)
        self.B = nn.Parameter(torch.randn(n_out, rank) * 0.01)
        self.scale = alpha / rank
        self._merged = None

    def invalidate(self):
        self._merged = None

    def effective_weight(self):
        if self._merged is None:
            self._merged = self.weight + self.scale * (self.B @ self.A)
        return self._merged

    def forward(self, x):
        return F.linear(x, self.effective_weight())


def lora_modules(model):
    return [m for m in model.modules() if isinstance(m, LoRALinear)]
