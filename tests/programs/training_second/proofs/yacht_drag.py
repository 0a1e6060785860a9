import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import run

a = run("yacht_drag")
b = run("yacht_drag", ("return gate * (1 + x", "return grad_output * gate * (1 + x"))
x = torch.randn(7, dtype=torch.double, requires_grad=True)
assert not torch.autograd.gradcheck(a["FusedSwish"].apply, x, raise_exception=False)
assert torch.autograd.gradcheck(b["FusedSwish"].apply, x)
last = lambda r: float(r.output.split()[-1])
assert last(b) > last(a) + 0.05, (last(a), last(b))
print("proved: yacht_drag")
