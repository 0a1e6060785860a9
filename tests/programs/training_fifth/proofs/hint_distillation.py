import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
import torch

WATCH = ("            opt.zero_grad()\n            loss.backward()", "            grads.append([g is not None for g in torch.autograd.grad(hint, list(student.middle.parameters()) + list(adapter.parameters()), retain_graph=True, allow_unused=True)])\n            opt.zero_grad()\n            loss.backward()")
HEAD = ("big_x, big_y =", "grads = []\nbig_x, big_y =")
bad = run("hint_distillation", WATCH, HEAD)
good = run("hint_distillation", WATCH, HEAD, ("self.value = output.detach()", "self.value = output"))
print(bad.output, good.output)
assert all(g == [False, False, True, True] for g in bad["grads"])
assert all(all(g) for g in good["grads"])
assert bad["final_hint"] > 1.2 * good["final_hint"]
