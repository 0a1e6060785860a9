import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

fix = ("            trainer.opt = trainer.make_optimizer()\n",
       "            trainer.opt = trainer.make_optimizer()\n"
       "            trainer.opt.zero_grad(); trainer.opt.step()\n"  # no gradients yet: nothing moves, only tells the scheduler that it stepped
       "            trainer.sched = torch.optim.lr_scheduler.LambdaLR(trainer.opt, lambda e: 0.5 * (1 + __import__('math').cos(__import__('math').pi * (epoch + 1 + e) / trainer.cfg.epochs)))\n")
accs, lrs = [], []
for edits in ((), (fix,)):
    rows = []
    for seed in range(3, 6):
        r = run("speech_keywords", ("seed: int = 3", f"seed: int = {seed}"), *edits)
        rows.append(r["trainer"].accuracy())
    accs.append(rows); lrs.append([g["lr"] for g in r["trainer"].opt.param_groups])
print("accuracy wrong", accs[0], "repaired", accs[1], "last learning rates", lrs)
assert lrs[0] == [0.02, 0.01] and max(lrs[1]) < 1e-6
assert all(b > a for a, b in zip(*accs)) and sum(accs[1]) > sum(accs[0]) + 0.06
