import torch
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap, functional_call, stack_module_state
f = lambda x: (x ** 3).sum()
x = torch.arange(1.0, 4.0)
print(grad(f)(x), grad(lambda y: grad(f)(y).sum())(x))
print(vmap(lambda a, b: a @ b)(torch.ones(2, 3), torch.ones(2, 3)))
print(jacrev(torch.sin)(x).diagonal(), jacfwd(torch.sin)(x).diagonal(), hessian(f)(x))
print(jvp(torch.exp, (x,), (torch.ones(3),)), vjp(torch.exp, x)[1](torch.ones(3)))
net = torch.nn.Linear(2, 1, bias=False)
with torch.no_grad():
    net.weight.fill_(2)
print(functional_call(net, {"weight": torch.ones(1, 2)}, (torch.ones(2),)))
print(vmap(grad(lambda w, i: (w * i).sum()), (None, 0))(torch.ones(2), torch.ones(3, 2)))
try:
    vmap(lambda a: a.item())(x)
except RuntimeError as error:
    print(error)
