# ended with LookupError, exit code 1
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): raise LookupError('own')
F.apply(x).sum().backward()
