import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
from proofkit import flat
import torch

torch.set_num_threads(1)
fix = ("[p.data for p in", "[p.data.clone() for p in")
# 1. the weights before and after an evaluation
moved = []
for edits in ((), (fix,)):
    r = run("mossy_pendulum", *edits, as_main=False)
    torch.manual_seed(0)
    model = r["CharModel"](12)
    ema = r["EMA"](model, 0.99)
    with torch.no_grad():
        [p.add_(torch.randn_like(p)) for p in model.parameters()]
    before = flat(model)
    with ema:
        pass
    moved.append(rel(flat(model), before))
print(moved)
assert moved[0] > 0.1 and moved[1] == 0
# 2. the training run
bad = run("mossy_pendulum", capture=("main",))
good = run("mossy_pendulum", fix, capture=("main",))
never = run("mossy_pendulum", fix, ("step % args.eval_every == 0", "step == args.steps"), capture=("main",))
get = lambda r: flat(r.locals["main"]["model"])
print(bad.output, good.output, rel(get(bad), get(never)), rel(get(good), get(never)))
assert rel(get(good), get(never)) < 1e-5 < 0.05 < rel(get(bad), get(never))  # evaluation must not change training
assert bad.locals["main"]["val"] > good.locals["main"]["val"] + 0.02
