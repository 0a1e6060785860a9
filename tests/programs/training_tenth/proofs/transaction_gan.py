import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

# What is in the critic's .grad at its step, against the gradient of its own loss alone.
probe = ("            opt_d.step()\n",
         "            own = torch.autograd.grad(critic_loss(critic, real, fake), list(critic.parameters()))\n"
         "            own = torch.cat([o.flatten() for o in own])\n"
         "            got = torch.cat([p.grad.flatten() for p in critic.parameters()])\n"
         "            LOG.append((((got - own).norm() / own.norm()).item(), F.cosine_similarity(got, own, dim=0).item()))\n"
         "            opt_d.step()\n")
short = ("STEPS = 1200", "STEPS = 300")
fix = ("        opt_g.zero_grad()\n", "        opt_g.zero_grad()\n        opt_d.zero_grad()\n")

bad, good = [], []
run("transaction_gan", probe, short, inject={"LOG": bad})
run("transaction_gan", probe, short, fix, inject={"LOG": good})
first, second = bad[2::2], bad[3::2]  # first and second critic step of each iteration
median = sorted(r for r, _ in first)[len(first) // 2]
against = sum(c < 0.5 for _, c in first) / len(first)
print(f"first critic step: relative error of the gradient min {min(first)[0]:.2f} median {median:.2f}, cosine < 0.5 in {against:.0%}")
print("second critic step:", max(second), "repaired:", max(good))
assert min(first)[0] > 0.1 and median > 0.5
assert max(r for r, _ in second) < 1e-5
assert max(r for r, _ in good) < 1e-5
