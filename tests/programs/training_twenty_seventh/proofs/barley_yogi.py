import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad
from proofkit import flat
import copy
import torch

# the repaired optimizer keeps its step count in the state of each parameter
FIX = [("        self.num_steps += 1\n", ""),
       ("            c1 = 1 - b1 ** self.num_steps\n            c2 = 1 - b2 ** self.num_steps\n", ""),
       ("                m, v = state", "                state['step'] = state.get('step', 0) + 1\n"
        "                c1, c2 = 1 - b1 ** state['step'], 1 - b2 ** state['step']\n                m, v = state")]
ONE_GO = ("session(train, 12, disk)\nmodel = session(train, 30, disk, resume=True)", "model = session(train, 30, disk)")
bad, bad_whole = run("barley_yogi"), run("barley_yogi", ONE_GO)
good, good_whole = run("barley_yogi", *FIX), run("barley_yogi", *FIX, ONE_GO)
gap = lambda a, b: rel(flat(a["model"]), flat(b["model"]))
print("without an interruption the two versions agree:", gap(bad_whole, good_whole))
print("interrupted against uninterrupted: as written", gap(bad, bad_whole), "repaired", gap(good, good_whole))


def updates(ns):
    """Length of the update in each of the 16 steps of epoch 12, from the same gradients: resumed and not."""
    torch.manual_seed(0)
    model, opt, sched = ns["build"]()
    x, y = ns["train"]
    for i in range(12 * 16):
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(x[:64]), y[:64]).backward()
        opt.step()
    weights, saved, out = copy.deepcopy(model.state_dict()), copy.deepcopy(opt.state_dict()), []
    for resumed in (False, True):
        twin, topt, tsched = ns["build"]()
        twin.load_state_dict(weights)
        topt.load_state_dict(copy.deepcopy(saved))
        before = flat(twin)
        o, m = (topt, twin) if resumed else (opt, model)
        for p in m.parameters():
            p.grad = torch.full_like(p, 0.01)
        for _ in range(16):
            o.step()
        out.append((flat(m) - before).norm().item())
    return out[1] / out[0]


print("update after a resume / without it: as written", updates(bad), "repaired", updates(good))
assert updates(bad) < 0.7 and abs(updates(good) - 1) < 1e-6
assert gap(bad_whole, good_whole) < 1e-6 and gap(good, good_whole) == 0
assert gap(bad, bad_whole) > 0.03
