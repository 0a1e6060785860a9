import os, sys; sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from proofkit import in_optimizer, run

a = run("catalog_weeks")
# repair: the grown table takes the old table's place in the optimizer, with its moments for the old rows
b = run(
    "catalog_weeks",
    (
        "            model.add_items(NEW_PER_WEEK)\n",
        "            before = model.item_table.weight\n"
        "            model.add_items(NEW_PER_WEEK)\n"
        "            group = trainer.opt.param_groups[0]['params']\n"
        "            at = [p is before for p in group].index(True)\n"
        "            group[at] = model.item_table.weight\n"
        "            old_state = trainer.opt.state.pop(before)\n"
        "            grow = lambda m: torch.cat([m, torch.zeros(NEW_PER_WEEK, m.shape[1])])\n"
        "            trainer.opt.state[group[at]] = {k: grow(v) if v.dim() else v for k, v in old_state.items()}\n",
    ),
)
print(a.output, b.output)
held = in_optimizer(a["model"].item_table.weight, a["trainer"].opt)
print("grown table in the optimizer:", held, "repaired:", in_optimizer(b["model"].item_table.weight, b["trainer"].opt))
sys.exit(0 if not held and b["recalls"][-1] > a["recalls"][-1] + 0.1 else 1)
