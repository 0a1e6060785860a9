import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run
old = """    for _ in range(EPOCHS):
        with torch.no_grad():
            old_logp = agent.policy(obs).log_prob(act).sum(-1)
"""
new = """    with torch.no_grad():
        old_logp = agent.policy(obs).log_prob(act).sum(-1)
    for _ in range(EPOCHS):
"""
# how far one update carries the policy from the policy that collected the batch
kl = ("    clipped = update(agent, optimizer, *batch)\n",
      "    from torch.distributions import kl_divergence\n"
      "    with torch.no_grad(): before = agent.policy(batch[0])\n"
      "    clipped = update(agent, optimizer, *batch)\n"
      "    with torch.no_grad(): KL.append(kl_divergence(before, agent.policy(batch[0])).sum(-1).mean().item())\n")
# log-probs that the ratio is measured against, compared with those at collection
A, B = [], []
for s in (2, 3, 4):
    seed = ("manual_seed(2)", f"manual_seed({s})")
    ka, kb = [], []
    a = run("reacher_ppo", seed, kl, inject={"KL": ka}, capture=("update",))
    b = run("reacher_ppo", seed, (old, new), kl, inject={"KL": kb}, capture=("update",))
    ra, rb = sum(a["history"][-10:]) / 10, sum(b["history"][-10:]) / 10
    A.append(ra); B.append(rb)
    print("last ten", ra, rb, "KL per update", sum(ka) / len(ka), sum(kb) / len(kb))
    assert sum(ka) > 2 * sum(kb)
    assert rb > ra
assert sum(B) / 3 > sum(A) / 3 + 0.03
