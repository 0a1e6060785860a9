import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

import torch

fix = ("alpha=1 - self.decay)\n", "alpha=1 - self.decay)\n        for average, current in zip(self.model.buffers(), model.buffers()):\n            average.copy_(current)\n")

wrong, good = run("waveform_gan"), run("waveform_gan", fix)
fresh = wrong["Generator"]()
state, start = dict(wrong["average"].model.named_buffers()), dict(fresh.named_buffers())
assert state and all(torch.equal(state[k], start[k]) for k in state)  # the statistics of the average are those of a new net
assert all(torch.equal(a, b) for a, b in zip(wrong["average"].model.parameters(), good["average"].model.parameters()))
moved = dict(wrong["generator"].named_buffers())
assert not torch.allclose(moved["blocks.0.running_var"], state["blocks.0.running_var"])
online = wrong["distance"](wrong["generator"], wrong["data"])
print("as written", wrong["result"], "repaired", good["result"], "generator itself", online)
assert wrong["result"] > 1.5 * good["result"] and wrong["result"] > 1.3 * online
