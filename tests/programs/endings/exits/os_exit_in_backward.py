# ended itself, exit code 8
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): os._exit(8)
F.apply(x).sum().backward()
