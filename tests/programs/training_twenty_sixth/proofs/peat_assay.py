import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

FIX = ("trainable = filter(lambda p: p.requires_grad, model.parameters())",
       "trainable = [p for p in model.parameters() if p.requires_grad]")
bad = run("peat_assay", capture=("fit",))
good = run("peat_assay", FIX, capture=("fit",))
none = run("peat_assay", FIX, ("l1: float = 0.2", "l1: float = 0.0"))
wb, wg, wn = (r["model"].readout.weight.detach() for r in (bad, good, none))
print("penalty", bad.locals["fit"]["penalty"], good.locals["fit"]["penalty"].item(), "|w|", wb.abs().sum(), wg.abs().sum(),
      "small", (wb.abs() < 0.02).float().mean(), (wg.abs() < 0.02).float().mean(), "rmse", bad["score"], good["score"])
assert bad.locals["fit"]["penalty"] == 0                 # sum over an exhausted iterator
assert rel(wb, wn) < 1e-5                                # exactly the run without the penalty
assert (wg.abs() < 0.02).float().mean() > 0.5 > 2 * (wb.abs() < 0.02).float().mean()
assert good["score"] < 0.8 * bad["score"]
