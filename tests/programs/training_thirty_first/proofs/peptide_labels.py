import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch
import torch.nn.functional as F

NAME = "peptide_labels"
program = run(NAME, capture=("main",))
m = program.locals["main"]
model, chains, labels = m["model"], m["train_chains"][:64], m["train_labels"][:64]
original = program["checkpoint"]
model.train()

def gradient(checkpoint):
    program["checkpoint"] = checkpoint
    torch.manual_seed(4)
    model.zero_grad()
    loss = F.cross_entropy(model(chains).flatten(0, 1), labels.flatten())
    loss.backward()
    return loss.item(), flat_grad(model), flat_grad(model.blocks[0])

l0, g0, b0 = gradient(original)                                                       # as written
l1, g1, b1 = gradient(lambda block, x, **kw: block(x))                                # the gradient of the loss
l2, g2, b2 = gradient(lambda block, x, **kw: original(block, x, use_reentrant=False))  # the generator's state is kept
print("losses", l0, l1, l2, "written vs plain", rel(g0, g1), rel(b0, b1), "repaired vs plain", rel(g2, g1), rel(b2, b1))
assert abs(l0 - l1) < 1e-6 and abs(l2 - l1) < 1e-6
assert rel(g0, g1) > 0.1 and rel(b0, b1) > 0.1
assert rel(g2, g1) < 1e-4 and rel(b2, b1) < 1e-4
