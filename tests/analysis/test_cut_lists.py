"""A list of more tensors than the trace names: no count of the named ones passes for a count of all."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm

from tensorlens.analysis.naming.names import names_of
from tensorlens.analysis.story.tensor_table import tensor_table
from tensorlens.analysis.training.module_rows import module_rows
from tensorlens.records.limits import LISTED_ITEMS

TRAINING = """import torch
ps = [torch.nn.Parameter(torch.ones(1)) for _ in range({})]
optimizer = torch.optim.SGD(ps, lr=0.1)
for _ in range(2):
    optimizer.zero_grad()
    torch.stack(ps).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("size", "rows"), [(LISTED_ITEMS - 1, [("ps", LISTED_ITEMS - 1)]), (LISTED_ITEMS + 5, [])])
def test_a_list_with_more_parameters_than_names_has_no_row(
    warm: Warm, tmp_path: Path, size: int, rows: list[tuple[str, int]]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(TRAINING.format(size))
    _, trace = warm.traced(script)
    assert [(row.name, row.parameters) for row in module_rows(trace, names_of(trace))] == rows


def test_the_row_of_a_group_says_that_the_group_may_be_larger(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import torch\nxs = [torch.ones(1) for _ in range(40)]\nys = [torch.ones(2) for _ in range(9)]\n")
    _, trace = warm.traced(script)
    assert [row.name for row in tensor_table(trace, names_of(trace)).rows] == ["16 tensors of xs", "ys (9 tensors)"]
