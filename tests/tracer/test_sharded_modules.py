"""Tests what is recorded of modules that `fully_shard` has divided among two ranks."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import jsonschema
from support.folders import DOCS, PROGRAMS
from support.ranks import report_of
from support.warm import Warm

from tensorlens.render.options import RenderOptions
from tensorlens.render.report.merged_text import merged_text
from tensorlens.render.report.shards import shard_rows

PROGRAM = """\
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2,))
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    net[2].bias.requires_grad_(False)
    fully_shard(net[0], mesh=mesh)
    fully_shard(net[2], mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    fully_shard(net, mesh=mesh)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.ones(1, 4)).sum().backward()
        optimizer.step()
    print([p.to_local().tolist() for p in net.parameters()])
    dist.destroy_process_group()
"""


def test_groups_and_the_parts_of_each_rank_are_recorded(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    runs = warm.ranks(script, 2)
    assert [ran.returncode for ran, _ in runs] == [0, 0], runs[0][0].stderr
    one, other = (trace.inspection for _, trace in runs)
    groups = [(each.names, each.kinds, each.forms, each.mesh, each.computes_in) for each in one.sharded]
    assert groups == [
        (("0.weight", "0.bias"), ("trained", "trained"), ("[3, 4] float32", "[3] float32"), (2,), ""),
        (("2.weight", "2.bias"), ("trained", "frozen"), ("[1, 3] float32", "[1] float32"), (2,), "bfloat16"),
    ]
    assert [each.shards for each in one.sharded] == [("[2, 4]", "[2]"), ("[1, 3]", "[1]")]
    assert [each.shards for each in other.sharded] == [("[1, 4]", "[1]"), ("[0, 3]", "[0]")]
    trace = runs[0][1]
    lines = [[trace.sites[site].span.line for site in each.sites if site is not None] for each in one.sharded]
    assert lines == [[10, 16], [11, 16]]


def test_the_lens_changes_no_value_of_a_sharded_module(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    traced = [ran.stdout for ran, _ in warm.ranks(script, 2)]
    plain = warm.plain_ranks(script, 2)
    assert traced == [ran.stdout for ran in plain]
    assert all(text.startswith("[[") for text in traced)


def test_the_report_lists_parts_by_rank(warm: Warm) -> None:
    report = report_of([trace for _, trace in warm.ranks(PROGRAMS / "ranks" / "correct--sharded.py", 2)])
    parts = {row.name: row.parts for row in shard_rows(report)}
    assert parts["0.bias"] == (("[3]", (0,)), ("[2]", (1,)))
    text = merged_text(report, "table", RenderOptions())
    assert "0.weight  [5, 4] float32  [3, 4] on 0, [2, 4] on 1" in text
    data = json.loads(merged_text(report, "json", RenderOptions()))
    jsonschema.validate(data, json.loads((DOCS / "report.schema.json").read_text()))
    assert data["shards"][0]["mesh"] == [2]
