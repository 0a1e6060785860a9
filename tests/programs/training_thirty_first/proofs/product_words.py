import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run, rel, in_optimizer, flat_grad, flat
import torch

repair = ("AdamW(router.parameters(), lr=1e-2, weight_decay=0.1)",
          "AdamW([{'params': [router.words.table.weight], 'weight_decay': 0.0},"
          " {'params': [p for p in router.parameters() if p is not router.words.table.weight]}], lr=1e-2, weight_decay=0.1)")
written, repaired = run("product_words"), run("product_words", repair)
n = written["BASE_WORDS"]
delivered = written["delivered_table"]()
rows = lambda r: r["router"].words.table.weight.detach()
assert (written["router"].words.table.weight.grad[:n] == 0).all()
assert torch.equal(rows(repaired)[:n], delivered)
ratio = rows(written)[:n] / delivered
assert ratio.max() < 0.95 and ratio.max() - ratio.min() < 1e-4, (ratio.min(), ratio.max())  # a pure decay
assert rel(rows(written)[:n], delivered) > 0.05
print("ok", ratio.mean().item())
