import gc, torch
gc.disable()
died = []
class Mark:
    def __init__(self, name): self.name = name
    def __del__(self): died.append(self.name)
class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, name):
        ctx.mark = Mark(name)
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2, None
x = torch.ones(2, requires_grad=True)
y = F.apply(x, "first")
print(died)
del y
print(died)
y = F.apply(x, "second").sum()
y.backward()
print(died)
del y
print(died)
y = x * 2
y.grad_fn.metadata["mark"] = Mark("third")
z = y.sum()
del y
print(died)
del z
print(died)
y = x.exp()
y.register_hook(lambda g, mark=Mark("hook"): None)
del y
print(died)
print(gc.collect())
