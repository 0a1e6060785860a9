import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
import torch
old = "        slow.mul_(decay).add_(fast, alpha=1 - decay)\n"
fix = (old, old + "    for slow, fast in zip(teacher.buffers(), student.buffers()):\n        slow.copy_(fast)\n")
for s in (3, 4):
    seed = ("manual_seed(3)", f"manual_seed({s})")
    a, b = run("bearing_teacher", seed), run("bearing_teacher", seed, fix)
    print("teacher", a["teacher_acc"], b["teacher_acc"], "student", a["student_acc"], b["student_acc"], "used", a["mask"].mean().item(), b["mask"].mean().item())
    bn = a["teacher"].features[1]
    assert torch.equal(bn.running_var, torch.ones_like(bn.running_var)) and not bn.running_mean.any() and bn.num_batches_tracked == 0
    assert a["student"].features[1].num_batches_tracked == 250
    assert b["teacher_acc"] > a["teacher_acc"] + 0.03
