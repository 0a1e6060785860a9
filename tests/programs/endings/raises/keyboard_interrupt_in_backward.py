# was interrupted, exit code 130
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise KeyboardInterrupt
F.apply(x).sum().backward()
