import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

wrong = run("word_vectors")
repair = (
    '    matrices = [p for p in model.parameters() if p.ndim >= 2]\n    vectors = [p for p in model.parameters() if p.ndim < 2]\n',
    '    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2 and n != "table.weight"]\n'
    '    vectors = [p for n, p in model.named_parameters() if p.ndim < 2 or n == "table.weight"]\n',
)
right = run("word_vectors", repair)
known = wrong["KNOWN"]

# The known rows get no gradient (the last one is exactly zero), and yet they have shrunk.
assert wrong["model"].table.weight.grad[:known].abs().max() == 0
ratio = wrong["table"][:known].norm(dim=1) / wrong["vectors"].norm(dim=1)
print("norm of the known rows, of what it was:", ratio.min().item(), ratio.max().item())
assert ratio.max() < 0.85
assert not torch.isclose(wrong["table"][:known], wrong["vectors"], rtol=0.1, atol=0).any()

# Without decay on the table they stay, bit for bit, and the added ones learn.
assert torch.equal(right["table"][:known], right["vectors"])
assert right["table"][known:].norm(dim=1).mean() > 0.5
