import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

a = run("ledge_anchors")
b = run("ledge_anchors", ("    target[best_anchor] = labels\n", "    target[best_anchor] = labels\n    best_iou[best_anchor] = 1.0\n"))


def lost(r):
    total = miss = 0
    for (t, owner), (_, boxes, _) in zip(r["matches"], r["train"]):
        for k in range(len(boxes)):
            total += 1
            miss += not bool(((t > 0) & (owner == k)).any())
    return miss / total


print("boxes without any positive anchor", lost(a), lost(b))
print("recall", a["test_recall"], b["test_recall"])
assert lost(a) > 0.05 and lost(b) == 0
assert b["test_recall"][0] > a["test_recall"][0] + 0.05
