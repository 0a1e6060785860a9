import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, flat_grad, rel
import torch

fix = ("use_reentrant=False, preserve_rng_state=False)", "use_reentrant=False)")
plain = ("x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False)", "x = block(x)")
grads = []
for edits in ((), (fix,), (plain,)):
    prog = run("deep_recall", ("STEPS = 250", "STEPS = 1"), *edits)
    torch.manual_seed(77)
    model = prog["Recall"]()
    tokens, answers = prog["make_batch"](64, torch.Generator().manual_seed(1))
    torch.manual_seed(5)
    torch.nn.functional.cross_entropy(model(tokens), answers).backward()
    grads.append(flat_grad(model))
bad, good = run("deep_recall"), run("deep_recall", fix)
print(rel(grads[0], grads[2]), rel(grads[1], grads[2]), bad["test_loss"], good["test_loss"], bad["test_acc"], good["test_acc"])
assert rel(grads[0], grads[2]) > 0.2 and rel(grads[1], grads[2]) < 1e-5
assert bad["test_loss"] > 1.3 * good["test_loss"]
