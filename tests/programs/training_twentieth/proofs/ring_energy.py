import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

as_is = run("ring_energy")
fixed = run("ring_energy", ("        optimizer.zero_grad()\n        real = ring(BATCH)", "        real = ring(BATCH)"),
            ("        (contrast + penalty).backward()", "        optimizer.zero_grad()\n        (contrast + penalty).backward()"))
print(as_is.output, fixed.output)
assert fixed["off_ring"] < 0.5 * as_is["off_ring"]
assert fixed["uniform"] - fixed["on_ring"] > 0.3 > as_is["uniform"] - as_is["on_ring"]
