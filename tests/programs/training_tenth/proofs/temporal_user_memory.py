import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import in_optimizer, rel, run
import torch

NAME = "temporal_user_memory"
fix = (("self.memory = past.detach()", "self.memory = past"),
       ("past = self.memory.clone()", "past = self.memory.detach().clone()"))
start = ("losses = [", "start = {n: p.detach().clone() for n, p in model.named_parameters()}\nlosses = [")
bad, good = run(NAME, start), run(NAME, start, *fix)
writers = [n for n in bad["start"] if n.startswith(("message.", "updater."))]
assert len(writers) == 6
for n in writers:
    p, q = bad["model"].get_parameter(n), good["model"].get_parameter(n)
    assert in_optimizer(p, bad["optimizer"])
    assert p.grad is None and torch.equal(p, bad["start"][n]), n
    assert q.grad is not None and rel(q.detach(), good["start"][n]) > 0.05, n
scores = [g["evaluate"](g["model"], g["test_events"], 15) for g in (bad, good)]
print("losses", bad["losses"][-1], good["losses"][-1], "accuracies", scores)
assert good["losses"][-1] < bad["losses"][-1] - 0.2 and scores[1] > scores[0] + 0.04
