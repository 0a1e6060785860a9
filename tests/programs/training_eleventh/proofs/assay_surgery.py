import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("assay_surgery", capture=("task_gradients",))
fixed = run("assay_surgery", ("per_task.append([p.grad for p in shared])", "per_task.append([p.grad.clone() for p in shared])"),
            capture=("task_gradients",))
a = wrong.locals["task_gradients"]["per_task"]
b = fixed.locals["task_gradients"]["per_task"]
same = all(a[0][k] is a[2][k] and a[1][k] is a[2][k] for k in range(len(a[0])))
differ = all((b[0][k] - b[2][k]).norm() > 1e-3 * b[2][k].norm() for k in range(len(b[0])))
print("task gradients are one tensor:", same, " repaired differ:", differ)
print("R2", wrong["held_out"], "repaired", fixed["held_out"])
worse = sum(fixed["held_out"][:2]) - sum(wrong["held_out"][:2])
sys.exit(0 if same and differ and worse > 0.1 else 1)
