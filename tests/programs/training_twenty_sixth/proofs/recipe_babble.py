import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

FIX = ("    labels[labels == PAD] = -100\n",
       "    for row, r in zip(labels, recipes):\n        row[len(r):] = -100\n")


def p_stop(result):
    """Probability of EOS at the true end of held-out recipes."""
    model, eos, probs = result["model"], result["EOS"], []
    with torch.no_grad():
        for r in result["held_out"]:
            logits, _ = model(r[None, :-1])
            probs.append(logits[0, -1].softmax(-1)[eos])
    return torch.stack(probs).mean().item()


bad, good = run("recipe_babble"), run("recipe_babble", FIX)
true_length = sum(len(r) - 2 for r in good["held_out"]) / len(good["held_out"])
print("p(EOS)", p_stop(bad), p_stop(good), "length", bad["lengths"].mean(), good["lengths"].mean(), "true", true_length)
_, labels = bad["collate"](bad["held_out"])
assert not (labels == bad["EOS"]).any()                  # the end is never a target
_, labels = good["collate"](good["held_out"])
assert (labels == good["EOS"]).sum() == len(good["held_out"])
assert p_stop(bad) < 0.02 and p_stop(good) > 0.5
assert abs(good["lengths"].mean() - true_length) < 0.5 and bad["lengths"].mean() > 3 * true_length
