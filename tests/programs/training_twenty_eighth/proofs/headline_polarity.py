import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

name = "headline_polarity"
repair = ("self.backup[name] = parameter.data\n", "self.backup[name] = parameter.data.clone()\n")


def after_restore(*edits):
    """Distance of the embedding before attack() and after restore(); whether the backup shares its memory."""
    program = run(name, *edits, as_main=False)
    torch.manual_seed(0)
    model = program["HeadlineClassifier"]()
    attacker = program["FastGradient"](model, epsilon=1.0)
    words = torch.randint(0, program["VOCAB"], (8, program["LENGTH"]))
    model(words).logsumexp(1).sum().backward()
    before = model.embedding.weight.detach().clone()
    attacker.attack()
    shares = attacker.backup["embedding.weight"].data_ptr() == model.embedding.weight.data_ptr()
    attacker.restore()
    return (model.embedding.weight.detach() - before).norm().item(), shares


moved, shares = after_restore()
assert shares and abs(moved - 1.0) < 1e-2, moved
moved, shares = after_restore(repair)
assert not shares and moved == 0.0

wrong, right = run(name), run(name, repair)
print("test accuracy:", wrong["score"], right["score"])
assert wrong["score"] < 0.5 and right["score"] > 0.8
