import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad

NORM = "        adv = (adv - adv.mean()) / (adv.std() + 1e-8)\n"
STEP = "                opt.step()\n"
DONE = "        history.append("
MEASURE = [  # record the spread of the ratio and the KL to the policy that collected the data
    ("    history = []\n", "    history, spread, shift = [], [], []\n"),
    (NORM, NORM + "        behaviour = net.dist(obs).logits.detach()\n"),
    (STEP, STEP + "                spread.append((ratio.max() - ratio.min()).item())\n"),
    (DONE, "        shift.append((behaviour.exp() * (behaviour - net.dist(obs).logits)).sum(-1).mean().item())\n" + DONE),
]
FIX = [
    ("                with torch.no_grad():\n                    old_logp = net.dist(obs[idx]).log_prob(act[idx])\n", ""),
    (NORM, NORM + "        old_all = net.dist(obs).log_prob(act).detach()\n"),
    ("log_prob(act[idx]) - old_logp)", "log_prob(act[idx]) - old_all[idx])"),
]
bad = run("cinder_hopper", *MEASURE, capture=("main",)).locals["main"]
good = run("cinder_hopper", *MEASURE, *FIX, capture=("main",)).locals["main"]
mean = lambda xs: sum(xs) / len(xs)
print("spread", max(bad["spread"]), max(good["spread"]))
print("kl", mean(bad["shift"]), mean(good["shift"]))
print("return", bad["history"][-3:], good["history"][-3:])
assert max(bad["spread"]) < 1e-5              # the ratio never leaves 1, so the clip can never act
assert max(good["spread"]) > 0.2
assert mean(bad["shift"]) > 2 * mean(good["shift"])   # the update is not kept close to the behaviour policy
