"""Checks what is kept of the statements of a file."""

from __future__ import annotations

from tensorlens.analysis.naming.blocks import _statements


def test_the_statements_of_a_block_share_one_tuple() -> None:
    """With one of its own for each, a script of 15,000 lines took two gigabytes."""
    by_line = _statements("x\ny\nif x:\n    y\n    z\n", "a.py")
    outer, inner = ([by_line[line][-1][1] for line in lines] for lines in ((1, 2), (4, 5)))
    for first, second in (outer, inner):
        assert first.block is second.block
        assert first.node is first.block[0]
        assert second.node is second.block[1]
    assert len(outer[0].block) == 3
    assert by_line[3][-1][1].block is outer[0].block
