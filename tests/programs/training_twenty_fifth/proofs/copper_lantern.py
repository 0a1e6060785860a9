import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
bad = run("copper_lantern", capture=("main",))
good = run("copper_lantern", ("use_reentrant=True", "use_reentrant=False"), capture=("main",))
plain = run("copper_lantern", ('"--checkpointing", type=int, default=1', '"--checkpointing", type=int, default=0'), capture=("main",))
lora = lambda r: {n: p for n, p in r.locals["main"]["model"].named_parameters() if "lora_" in n}
b, g, p = lora(bad), lora(good), lora(plain)
print(bad.output, good.output)
assert len(b) == 16 and all(in_optimizer(q, bad.locals["main"]["opt"]) for q in b.values())
assert all(q.grad is None for q in b.values()) and all(q.grad is not None for q in g.values())
assert all(q.abs().max() == 0 for n, q in b.items() if n.endswith("lora_b"))
assert all(q.abs().max() > 0 for n, q in g.items() if n.endswith("lora_b"))
assert all(torch.allclose(g[n], p[n], atol=1e-4) for n in g)  # the repaired one equals training without checkpointing
acc = lambda r: r.locals["main"]["acc"]
assert acc(good) > acc(bad) + 0.15, (acc(good), acc(bad))
