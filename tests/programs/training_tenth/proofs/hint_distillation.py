import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
import torch
import torch.nn.functional as F
from proofkit import run


def hint_grads(r):
    student, teacher, hint = r["student"].train(), r["teacher"], r["hint"]
    a, b = r["FeatureTap"](student.stage1), r["FeatureTap"](teacher.stage1)
    x = r["train_x"][:64]
    teacher(x), student(x)
    loss = hint(a.value, b.value)
    own = torch.autograd.grad(loss, list(student.parameters()), allow_unused=True, retain_graph=True)
    return [g is not None for g in own], torch.autograd.grad(loss, hint.regress.weight)[0].norm().item()


wrong = run("hint_distillation")
fixed = run("hint_distillation", ("self.value = output.detach()", "self.value = output"))
reached, regress = hint_grads(wrong)
reached2, _ = hint_grads(fixed)
print(sum(reached), regress, sum(reached2), wrong["history"][-1], fixed["history"][-1])
assert not any(reached) and regress > 0, "the hint trains only the regressor"
assert sum(reached2) == 6, "repaired: stem and stage1 get the hint's gradient"
assert wrong["history"][-1] > fixed["history"][-1] and wrong["history"][-1] < wrong["history"][0]
no_hint = run("hint_distillation", ("hint_weight=2.0", "hint_weight=0.0"))
same = all(torch.equal(p, q) for p, q in zip(wrong["student"].parameters(), no_hint["student"].parameters()))
assert same, "the student is bitwise the one that is trained without the hint"
