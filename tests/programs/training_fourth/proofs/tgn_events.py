import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))); from proofkit import *
b = run("tgn_events", capture=("main",)).locals["main"]
# repaired: the messages of a batch are applied, with a graph, at the beginning of the next one
g = run("tgn_events",
        ("    hits, count = 0.0, 0\n", "    hits, count = 0.0, 0\n    pending = None\n"),
        ("        logits = scorer(memory.read(users), item)\n",
         "        full = memory.state.clone()\n"
         "        if pending is not None:\n"
         "            full[pending[0]] = memory.updater(pending[1], full[pending[0]])\n"
         "        logits = scorer(full[users], item)\n"),
        ("        memory.update(users, features)\n", "        memory.state.copy_(full.detach())\n        pending = (users, features)\n"),
        capture=("main",)).locals["main"]
print("accuracy", b["accuracy"], "repaired", g["accuracy"])
assert all(p.grad is None for p in b["memory"].updater.parameters())
assert all(in_optimizer(p, b["optimizer"]) for p in b["memory"].parameters())
assert all(p.grad is not None for p in g["memory"].updater.parameters())
assert g["accuracy"] > b["accuracy"] + 0.08
