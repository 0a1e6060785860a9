import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import run

wrong = run("query_item_towers")
right = run("query_item_towers", (", norm: nn.Module = nn.BatchNorm1d(64)", ""),
            ("self.norm = norm", "self.norm = nn.BatchNorm1d(cfg.hidden)"))
m, r = wrong["model"], right["model"]
assert m.query_tower.norm is m.item_tower.norm
assert r.query_tower.norm is not r.item_tower.norm
a, b = (x["recall_at"](x["model"], x["data"], 1) for x in (wrong, right))
a10, b10 = (x["recall_at"](x["model"], x["data"], 10) for x in (wrong, right))
q, i = wrong["data"].test()
pre_q, pre_i = m.query_tower.proj(q).mean(0), m.item_tower.proj(i).mean(0)
d = lambda pre, bn: ((bn.running_mean - pre).abs() / bn.running_var.sqrt()).mean().item()
print("recall@1", a, b, "recall@10", a10, b10, "offset of running mean", d(pre_q, m.query_tower.norm), d(pre_i, m.item_tower.norm))
assert b > a + 0.1 and b10 > a10 + 0.05
