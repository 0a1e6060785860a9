import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

old = "        target.mul_(decay).add_(source, alpha=1 - decay)\n"
fix = (old, old + "    for target, source in zip(teacher.buffers(), student.buffers()):\n        target.copy_(source)\n")
bad = run("lesion_teacher")
good = run("lesion_teacher", fix)
bn = [m for m in bad["teacher"].modules() if hasattr(m, "running_mean")]
print("teacher running means / variances:", [(m.running_mean.abs().max().item(), m.running_var.mean().item()) for m in bn])
print("student running variance:", [m.running_var.mean().item() for m in bad["student"].modules() if hasattr(m, "running_mean")])
print("dice (teacher, student):", bad["scores"], good["scores"])
assert all(m.running_mean.abs().max() == 0 and (m.running_var == 1).all() for m in bn)
assert good["scores"][0] > bad["scores"][0] + 0.2
