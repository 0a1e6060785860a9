import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import in_optimizer, run

wrong = run("word_vectors")
start = run("word_vectors", ("for epoch in range(8):", "for epoch in range(0):"))
words = wrong["model"].words.weight
assert in_optimizer(words, wrong["optimizer"]) and not words.requires_grad and words.grad is None
assert torch.equal(words, start["model"].words.weight)
fixed = run("word_vectors", ("padding_idx=0)", "padding_idx=0, freeze=False)"))
assert not torch.equal(fixed["model"].words.weight, start["model"].words.weight)
assert fixed["acc"] > wrong["acc"] + 0.05
print("proved: word_vectors")
