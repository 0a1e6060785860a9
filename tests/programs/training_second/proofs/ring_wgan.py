import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, run

FIX = (".sum(), points)", ".sum(), points, create_graph=True)")
OFF = ("penalty: float = 10.0", "penalty: float = 0.0")
end = [flat(run("ring_wgan", *e, capture=["main"]).locals["main"]["game"].critic) for e in ([], [OFF], [FIX], [FIX, OFF])]
assert torch.equal(end[0], end[1])
assert not torch.allclose(end[2], end[3], atol=1e-2) and torch.allclose(end[1], end[3], atol=1e-4)
print("proved: ring_wgan")
