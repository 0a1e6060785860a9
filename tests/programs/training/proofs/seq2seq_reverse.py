import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, in_optimizer, run

wrong = run("seq2seq_reverse", capture=["main"]).locals["main"]
model, opt = wrong["model"], wrong["optimizer"]
left = [n for n, p in model.named_parameters() if not in_optimizer(p, opt)]
assert left == ["bridge.weight", "bridge.bias"], left
start = run("seq2seq_reverse", ("range(80)", "range(0)"), capture=["main"]).locals["main"]["model"]
assert torch.equal(flat(model.bridge), flat(start.bridge))
assert model.bridge.weight.grad.abs().sum() > 0
print("proved: seq2seq_reverse")
