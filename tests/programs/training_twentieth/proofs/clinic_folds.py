import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

bad = run("clinic_folds")
good = run("clinic_folds", ("in model.children():", "in model.modules():"))
print(bad.output, good.output)

# reset_weights leaves the body as it was and changes only the head
m = bad["model"]
body = [p.detach().clone() for p in m.body.parameters()]
head = m.head.weight.detach().clone()
bad["reset_weights"](m)
same = all((a == b).all() for a, b in zip(body, m.body.parameters()))
assert same and (head != m.head.weight).any()
print("fold scores:", bad["fold_acc"], good["fold_acc"])
assert min(bad["fold_acc"][1:]) > 0.9          # folds 2..5 have seen their validation rows
assert bad["cv_acc"] - bad["new_acc"] > 0.12   # so the reported score is far above the truth
assert abs(good["cv_acc"] - good["new_acc"]) < 0.07
