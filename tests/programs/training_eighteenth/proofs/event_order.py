import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, in_optimizer

bad = run("event_order")
good = run("event_order", ("    return [\n        {\"params\": decay", "    plain.append(model.position)\n    return [\n        {\"params\": decay"))
tb, tg = bad["trainer"], good["trainer"]
print(bad.output, good.output)
missing = [n for n, p in tb.model.named_parameters() if not in_optimizer(p, tb.optimizer)]
print(missing, tb.model.position.abs().max().item(), tb.model.position.grad.abs().max().item())
assert missing == ["position"] and tb.model.position.abs().max() == 0 and tb.model.position.grad.abs().max() > 0
assert tg.model.position.abs().max() > 0
a, b = float(bad.output.split()[-1]), float(good.output.split()[-1])
assert b > 0.9 and a < 0.6
