import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

FIX = ("F.one_hot(labels, CLASSES)", "F.one_hot(labels, CLASSES).float()")
ok = []
for seed in (3, 4):
    s = ("manual_seed(3)", f"manual_seed({seed})")
    bad, good = run("label_ensemble", s), run("label_ensemble", s, FIX)
    print(bad.output, good.output)
    tb, tg = bad["ensemble"].targets.float().sum(1), good["ensemble"].targets.sum(1)
    print("row sums of the targets", tb.mean().item(), tg.mean().item(), "acc", bad["test_acc"], good["test_acc"], bad["ensemble"].targets.dtype)
    ok.append(tb.max().item() == 0 and abs(tg.mean().item() - 1) < 1e-4 and good["test_acc"] > bad["test_acc"] + 0.02)
sys.exit(0 if all(ok) else 1)
