import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

bad = run("gazette_tagger")
good = run("gazette_tagger", ("return state[order]", "return state[order.argsort()]"))


def gap(result):
    """Titles encoded as a batch against the same titles encoded one by one."""
    titles, lengths, _, _ = result["collate"](result["held"][:32])
    encoder = result["model"].title
    with torch.no_grad():
        together = encoder(titles, lengths)
        alone = torch.cat([encoder(t[None, :n], n[None]) for t, n in zip(titles, lengths)])
    return rel(together, alone)


print(gap(bad), gap(good), bad["held_accuracy"], good["held_accuracy"])
assert gap(good) < 1e-4 and gap(bad) > 0.3
assert good["held_accuracy"] > bad["held_accuracy"] + 0.1
