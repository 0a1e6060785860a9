import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
from proofkit import flat, flat_grad, in_optimizer, rel, run

NAME = "citation_gcn"

was = run(NAME)["model"]
registered = {id(p) for p in was.parameters()}
for conv in was.convs:
    assert id(conv.weight) not in registered and conv.weight.grad is not None and conv.bias.abs().sum() == 0
now = run(NAME, ("[GraphConv(hidden, hidden) for _ in range(layers)]", "nn.ModuleList([GraphConv(hidden, hidden) for _ in range(layers)])"))["model"]
assert all(conv.bias.abs().sum() > 0 for conv in now.convs)

print(f"proved: {NAME}")
