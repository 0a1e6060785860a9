import gc, sys, weakref, torch
gc.disable()
x = torch.ones(1000, requires_grad=True)
def alive(*refs):
    return [r() is not None for r in refs]
y = x * 2
z = y.exp()
refs = weakref.ref(y), weakref.ref(z), weakref.ref(y.untyped_storage())
print(sys.getrefcount(x), sys.getrefcount(y), sys.getrefcount(z))
del y
print(alive(*refs))
z.sum().backward()
g = weakref.ref(x.grad)
del z
print(alive(*refs, g))
x.grad = None
print(alive(g))
for i in range(3):
    h = x.sin()
    r = weakref.ref(h)
    h = h + 1
    print(alive(r))
p = torch.nn.Parameter(torch.ones(2))
o = torch.optim.SGD([p], lr=0.1)
w = weakref.ref(p), weakref.ref(o)
del p
print(alive(*w)[0])
del o
print(alive(*w))
m = torch.nn.Linear(2, 2)
r = weakref.ref(m), weakref.ref(m.weight)
m(torch.ones(2)).sum().backward()
del m
print(alive(*r))
class Ours(RuntimeError):
    pass
class Raises(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        error = Ours("no")
        Raises.error = weakref.ref(error)
        raise error
try:
    Raises.apply(x)
except Ours:
    print(alive(Raises.error))
print(alive(Raises.error))
