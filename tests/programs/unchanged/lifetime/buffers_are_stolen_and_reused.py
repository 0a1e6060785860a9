import torch
x = torch.ones(4096, requires_grad=True)
given = []
y = x * 1
y.register_hook(lambda g: given.append(g.data_ptr()))
y.sum().backward()
w = torch.ones(4096, requires_grad=True)
seen = []
(w * 3).register_hook(lambda g: None)
w.register_post_accumulate_grad_hook(lambda p: seen.append((p.grad._version, p.grad.is_contiguous())))
for _ in range(3):
    (w * 3).sum().backward()
    seen.append(w.grad._version)
print(seen, w.grad[:2])
g = torch.ones(4096)
v = torch.ones(4096, requires_grad=True)
v.backward(g)
print(v.grad.data_ptr() == g.data_ptr())
class Give(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        fresh = torch.ones(4096)
        Give.where = fresh.data_ptr()
        return fresh
u = torch.ones(4096, requires_grad=True)
Give.apply(u).sum().backward()
print("stolen", u.grad.data_ptr() == Give.where)
a = torch.ones(1 << 20)
where = a.data_ptr()
del a
b = torch.ones(1 << 20)
for _ in range(5):
    p = b.data_ptr()
    b = None
    b = torch.ones(1 << 20)
print(b.add_(1) is b, b._version)
