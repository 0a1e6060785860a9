import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

NAME = "bird_calls"
FIX = ("self.value = output.detach()", "self.value = output")

def look(*edits):
    m = run(NAME, *edits, capture=("main",)).locals["main"]
    student, adapter, tap = m["student"], m["adapter"], m["student_tap"]
    tap = type(tap)(student.features)
    student(m["pool_x"])
    m["teacher"](m["pool_x"])
    target = m["teacher"].features(m["pool_x"]).detach()
    hint = torch.nn.functional.mse_loss(adapter(tap.value), target)
    g_student = torch.autograd.grad(hint, list(student.features.parameters()), allow_unused=True, retain_graph=True)
    g_adapter = torch.autograd.grad(hint, list(adapter.parameters()))
    return hint.item(), g_student, g_adapter, m["test_score"]

h0, s0, a0, acc0 = look()
h1, s1, a1, acc1 = look(FIX)
print("hint on the pool", h0, h1, "accuracy", acc0, acc1)
assert all(g is None for g in s0) and all(g.norm() > 0 for g in a0)
assert all(g is not None and g.norm() > 0 for g in s1)
assert h1 < 0.85 * h0
assert acc1 > acc0
