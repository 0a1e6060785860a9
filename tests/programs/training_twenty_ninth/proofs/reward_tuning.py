import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

FIX = ('        kl_loss = batch["kl"].mean()\n',
       '        with torch.no_grad():\n            ref_log_probs = reference.answer_log_probs(batch["tokens"])\n'
       '        kl_loss = (log_probs.exp() * (log_probs - ref_log_probs)).sum(-1).mean()\n')
written = run("reward_tuning")
without = run("reward_tuning", ("BETA = 0.5", "BETA = 0.0"))
strong = run("reward_tuning", ("BETA = 0.5", "BETA = 50.0"))
# the coefficient of the penalty changes nothing at all
assert torch.equal(flat(written["policy"]), flat(without["policy"]))
assert torch.equal(flat(written["policy"]), flat(strong["policy"]))
repaired = run("reward_tuning", FIX)
print(written["kl_history"][-1], repaired["kl_history"][-1])
assert repaired["kl_history"][-1] < 0.6 * written["kl_history"][-1]
