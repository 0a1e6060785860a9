import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ("torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)",
       "torch.optim.AdamW([{'params': [model.words.weight], 'weight_decay': 0.0}, {'params': model.head.parameters()}], "
       "lr=1e-2, weight_decay=0.1)")
wrong = run("ticket_routing")
right = run("ticket_routing", FIX)
n = wrong["PUBLISHED"]
drift = rel(wrong["table"][:n], wrong["vectors"])
print(drift, wrong["table"][:n].norm(dim=1).mean().item(), wrong["test_accuracy"], right["test_accuracy"])
assert wrong["model"].words.weight.grad[:n].abs().max().item() == 0.0  # the hook does its part
assert drift > 0.1  # and yet the published rows have shrunk
assert torch.nn.functional.cosine_similarity(wrong["table"][:n], wrong["vectors"]).min().item() > 0.9999
assert torch.equal(right["table"][:n], right["vectors"])
assert right["test_accuracy"] > 0.5 and right["table"][n:].norm(dim=1).mean() > 0.5
