import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat

FIX = ("trainable = filter(lambda p: p.requires_grad, model.parameters())",
       "trainable = list(filter(lambda p: p.requires_grad, model.parameters()))")
WATCH = ("        nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n",
         "        nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n"
         "        norms.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item())\n")
wrong_norms, right_norms = [], []
a = run("store_demand", WATCH, inject={"norms": wrong_norms}, capture=("main",))
b = run("store_demand", WATCH, FIX, inject={"norms": right_norms})
print("largest norm at step(): as written", max(wrong_norms), "repaired", max(right_norms))
print("median error: as written", a["error"], "repaired", b["error"])
assert list(a.locals["main"]["trainable"]) == []  # the iterator was used up by the optimizer
assert max(wrong_norms) > 2 * a["MAX_NORM"]  # the limit never acted
assert max(right_norms) <= a["MAX_NORM"] * 1.001
# without any clipping call the run as written is the same run, to the last bit
c = run("store_demand", ("        nn.utils.clip_grad_norm_(trainable, MAX_NORM)\n", ""))
assert bool((flat(a["model"]) == flat(c["model"])).all())
assert not b["error"] > a["error"]
