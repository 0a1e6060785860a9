import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch

from proofkit import flat, rel, run

clip = "norms.append(clip_grad_norm_(model.parameters(), MAX_NORM).item())"
wrong = run("rnn_adding", capture=["train"]).locals["train"]
without = run("rnn_adding", (clip, "norms.append(1.0)"), capture=["train"]).locals["train"]
assert torch.equal(flat(wrong["model"]), flat(without["model"])), "clipping has no influence on the weights"
assert max(wrong["norms"]) > 10 * 0.25
fixed = run("rnn_adding", ("        optimizer.step()\n", ""), (clip, clip + "; optimizer.step()"), capture=["train"]).locals["train"]
assert rel(flat(wrong["model"]), flat(fixed["model"])) > 0.05
print("proved: rnn_adding")
