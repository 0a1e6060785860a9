import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, in_optimizer, run

wrong = run("sensor_convnet", capture=["main"]).locals["main"]
net, opt = wrong["net"], wrong["opt"]
assert all(p.grad is not None and not in_optimizer(p, opt) for p in net.dense.parameters())
one = run("sensor_convnet", ("epochs=6", "epochs=1"), capture=["main"]).locals["main"]["net"]
assert torch.equal(flat(net.dense), flat(one.dense)) and not torch.equal(flat(net.out), flat(one.out))
print("proved: sensor_convnet")
