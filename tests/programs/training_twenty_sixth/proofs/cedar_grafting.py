import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("params = filter(lambda p: p.requires_grad, model.parameters())",
       "params = [p for p in model.parameters() if p.requires_grad]")
OFF = ("0.5 * args.alpha * penalty", "0.0")
bad = run("cedar_grafting", capture=("finetune",))
off = run("cedar_grafting", OFF)
good = run("cedar_grafting", FIX, capture=("finetune",))


def drift(g):
    trained = [p for p in g["model"].parameters() if p.requires_grad]
    return sum(((p - a) ** 2).sum() for p, a in zip(trained, g["anchors"])).item()


print("penalty", bad.locals["finetune"]["penalty"], float(good.locals["finetune"]["penalty"]))
print("drift", drift(bad), drift(off), drift(good))
print("target", bad["target_acc"], good["target_acc"], "source", bad["source_acc"], good["source_acc"])
assert bad.locals["finetune"]["penalty"] == 0 and float(good.locals["finetune"]["penalty"]) > 0
assert drift(bad) == drift(off)  # same as without any penalty
assert drift(bad) > 3 * drift(good)
assert good["source_acc"] > bad["source_acc"] + 0.02
