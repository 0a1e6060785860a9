import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

a = run("adapter_shift", capture=["main"])
b = run("adapter_shift", ("nn.init.zeros_(self.down)", "nn.init.kaiming_uniform_(self.down, a=5**0.5)"), capture=["main"])
for r, stuck in ((a, True), (b, False)):
    m = r.locals["main"]["model"]
    for layer in (m.mix, m.project):
        assert ((layer.up == 0).all() and (layer.down == 0).all()).item() == stuck
        assert layer.up.grad is not None and (layer.up.grad == 0).all().item() == stuck
last = lambda r: float(r.output.split()[-1])
assert last(b) < last(a)
print("proved: adapter_shift")
