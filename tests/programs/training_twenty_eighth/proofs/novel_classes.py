import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("weight_decay=0.2", "weight_decay=0.0")
wrong, right = run("novel_classes"), run("novel_classes", repair)


def moved(r):
    k = r["KNOWN"]
    return rel(r["wide_head"].weight[:k], r["head"].weight), rel(r["wide_head"].bias[:k], r["head"].bias)


print("known rows moved by", moved(wrong), moved(right))
assert moved(wrong)[0] > 0.2 and moved(wrong)[1] > 0.2
assert moved(right) == (0.0, 0.0)
# their gradient was zero all the time
assert wrong["wide_head"].weight.grad[: wrong["KNOWN"]].abs().max() == 0
acc = [r["accuracy"](r["encoder"], r["wide_head"], *r["known_test"]) for r in (wrong, right)]
print("known classes after", acc)
assert acc[1] > acc[0] + 0.03
