import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("distill_images", capture=("main",)).locals["main"]
g = run("distill_images", ("        distiller.train()\n", "        distiller.train()\n        teacher.eval()\n"), capture=("main",)).locals["main"]
for d in (b, g):
    print({k: round(d[k], 3) for k in ("teacher_before", "teacher_after", "student_final")})
assert b["teacher_before"] == g["teacher_before"] == g["teacher_after"]
assert b["teacher_after"] < b["teacher_before"] - 0.05
n = lambda d: d["teacher"].features[1].num_batches_tracked.item()
assert n(b) > n(g)
