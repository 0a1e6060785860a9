import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("parish_ledger")
good = run("parish_ledger", ("padding = ids.eq(PAD)", "padding = ids.ne(PAD)"))
seen = {}
for label, g in (("bad", bad), ("good", good)):
    model = g["model"].eval()
    ids = torch.zeros(1, 20, dtype=torch.long)
    ids[0, :8] = torch.tensor([5, 9, 12, 7, 10, 14, 6, 11])
    other = ids.clone()
    other[0, 3] = 20  # a change of entry 3 must be able to move the logits of entry 0
    with torch.no_grad():
        entry = (model(ids)[0, 0] - model(other)[0, 0]).abs().max().item()
        # the padding rows must not
        base = model(ids)[0, 0].clone()
        model.pos[8:] = 3 * torch.randn(12, 32, generator=torch.Generator().manual_seed(0))
        pad = (model(ids)[0, 0] - base).abs().max().item()
    seen[label] = (entry, pad)
print(seen, bad["test_acc"], good["test_acc"])
assert seen["bad"][0] == 0 and seen["good"][0] > 0.05
assert seen["good"][1] == 0 and seen["bad"][1] > 0
assert good["test_acc"] > bad["test_acc"] + 0.08
