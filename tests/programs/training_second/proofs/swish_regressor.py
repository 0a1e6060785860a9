import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "swish_regressor"

x = torch.linspace(-2, 2, 9, dtype=torch.double, requires_grad=True)
beta = torch.tensor(2.0, dtype=torch.double, requires_grad=True)
was = run(NAME)
assert not torch.autograd.gradcheck(was["SwishFunction"].apply, (x, beta), raise_exception=False)
now = run(NAME, ("(gate + slope)", "(gate + beta * slope)"))
assert torch.autograd.gradcheck(now["SwishFunction"].apply, (x, beta))
assert rel(flat(was["model"]), flat(now["model"])) > 0.01

print(f"proved: {NAME}")
