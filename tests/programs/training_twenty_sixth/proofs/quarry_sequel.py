import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
import torch

torch.set_num_threads(1)
fix = ('        self.opt.load_state_dict(ckpt["opt"])\n',
       '        lr = self.opt.param_groups[0]["lr"]\n        self.opt.load_state_dict(ckpt["opt"])\n'
       '        self.opt.param_groups[0]["lr"] = lr\n')
cap = ("main", "second_run", "load")
bad, good = run("quarry_sequel", capture=cap).locals, run("quarry_sequel", fix, capture=cap).locals


def facts(v):
    t, ck = v["second_run"]["trainer"], v["load"]["ckpt"]
    start = torch.cat([p.flatten() for p in ck["model"].values()])
    end = torch.cat([p.flatten() for p in t.model.state_dict().values()])
    return t.opt.param_groups[0]["lr"], rel(end, start), t.evaluate(v["second_run"]["x_val"], v["second_run"]["y_val"]), start


(lb, mb, eb, sb), (lg, mg, eg, sg) = facts(bad), facts(good)
asked = bad["main"]["args"].tune_lr
print("asked", asked, "lr used", lb, lg, "| movement", mb, mg, "| val", eb, eg)
assert torch.equal(sb, sg)
assert lg == asked and lb < 0.01 * asked
assert mg > 20 * mb and eb > 2 * eg
