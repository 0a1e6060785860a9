"""Hand-written optimisers."""
import torch


class Momentum:
    def __init__(self, params, lr, beta=0.9):
        self.params, self.lr, self.beta = list(params), lr, beta
        self.speed = [p.detach().clone().zero_() for p in self.params]

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.params, self.speed):
            v.mul_(self.beta).add_(p.grad)
            p -= self.lr * v
