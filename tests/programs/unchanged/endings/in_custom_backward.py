import torch
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        def deep():
            raise KeyboardInterrupt("in backward")
        deep()
x = torch.ones(2, requires_grad=True)
F.apply(x).sum().backward()
