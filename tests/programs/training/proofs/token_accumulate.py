import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat_grad, rel, run

ns = run("token_accumulate", as_main=False)
torch.manual_seed(0)
group = ns["make_batches"](torch.Generator().manual_seed(60))[:4]
model = ns["TinyLM"]()
for tokens in group:
    (ns["language_loss"](model, tokens) / ns["ACCUM"]).backward()
wrong = flat_grad(model).clone()
counts = [(t[:, 1:] != ns["PAD"]).sum().item() for t in group]
assert max(counts) > 3 * min(counts), counts
model.zero_grad()
for tokens, n in zip(group, counts):
    (ns["language_loss"](model, tokens) * n / sum(counts)).backward()
right = flat_grad(model).clone()
assert rel(wrong, right) > 0.2, rel(wrong, right)
print("proved: token_accumulate")
