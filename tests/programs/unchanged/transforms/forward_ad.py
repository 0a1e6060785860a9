import torch
import torch.autograd.forward_ad as fwd
with fwd.dual_level():
    d = fwd.make_dual(torch.ones(2), torch.full((2,), 3.0))
    out = (d * d).sin()
    print(fwd.unpack_dual(out))
    with fwd.dual_level() if False else torch.no_grad():
        print(fwd.unpack_dual(d * 2).tangent)
print(torch.autograd.functional.jvp(lambda x: x ** 2, torch.ones(2), torch.ones(2)))
print(torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.ones(2)))
