import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat, rel

none = ("for epoch in range(4)", "for epoch in range(0)")
fix = ("        fake = self.gen.synthesize(n, self.g)\n        loss = self.judge(fake, True)", "        fake = self.gen(torch.randn(n, self.gen.noise, generator=self.g))\n        loss = self.judge(fake, True)")
start = flat(run("gan_sensors", none)["trainer"].gen)
a = run("gan_sensors")["trainer"].gen
b = run("gan_sensors", fix)["trainer"].gen
assert all(p.grad is None for p in a.parameters())
assert rel(flat(a), start) == 0.0 and rel(flat(b), start) > 0.05
print("proved: gan_sensors")
