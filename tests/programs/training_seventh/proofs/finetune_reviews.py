import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
w, f = run("finetune_reviews"), run("finetune_reviews", ("lambda step: staged(step, start, steps)", "lambda step, start=start: staged(step, start, steps)"))
print(w.output, f.output)
first = lambda r, k: next(i for i, lrs in enumerate(r["history"]) if lrs[k] > 0)
print([first(w, k) for k in range(4)], [first(f, k) for k in range(4)])
assert [first(w, k) for k in range(4)] == [0, 0, 0, 0]
assert [first(f, k) for k in range(4)] == [90, 70, 45, 0]
assert w["drift"] > 3 * f["drift"] > 0
