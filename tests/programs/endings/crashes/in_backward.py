# was killed by SIGSEGV
time.sleep(1)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): ctypes.string_at(0)
F.apply(x).sum().backward()
