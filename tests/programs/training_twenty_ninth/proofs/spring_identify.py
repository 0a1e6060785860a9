import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

a = run("spring_identify", capture=("main",))
b = run("spring_identify", ("        self.A, self.B = self.matrices()\n", ""),
        ("A, B = self.A, self.B", "A, B = self.matrices()"), capture=("main",))
ma, mb = a.locals["main"]["model"], b.locals["main"]["model"]
ea, eb = a.locals["main"]["error"].item(), b.locals["main"]["error"].item()
print(a.output, b.output)
# the parameters moved, but the matrices in use are those of the initial values
assert abs(ma.stiffness.item() - 2.5) > 0.5
assert abs(ma.A[1, 0].item() + 2.5) < 1e-6 and abs(ma.B[1, 0].item() - 1.0) < 1e-6
x, u = torch.randn(5, 2), torch.randn(5, 1)
def shift(m):
    with torch.no_grad():
        before = m.step(x, u)
        m.stiffness += 5.0
        return (m.step(x, u) - before).abs().max().item()
assert abs(mb.stiffness.item() - 4.0) < 0.4, mb.stiffness
assert shift(ma) == 0.0 and shift(mb) > 0.01
assert ea > 3 * eb, (ea, eb)
