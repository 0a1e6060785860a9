"""The comparison with an eager run separates wrong gradients from rounding."""

from __future__ import annotations

import pytest

from tensorlens.records.eager import NOT_FINITE, OTHER_LEAF, EagerComparison, agree_in, compare_with_eager, labelled_as
from tensorlens.records.reference import Pass, Sample


def sample(*values: float, dtype: str = "float32") -> Sample:
    return Sample((len(values),), dtype, values)


def passed(
    gradient: Sample | None,
    *,
    index: int = 5,
    leaf: Sample | None = None,
    failed: bool = False,
    exact: Sample | None = None,
) -> Pass:
    in_double = {} if exact is None else {0: exact}
    return Pass(index, (), {0: (3, leaf or sample(1.0, 2.0), gradient)}, failed, in_double)


RIGHT = passed(sample(1.0, 2.0))


def test_equal_gradients_agree() -> None:
    assert compare_with_eager([RIGHT], [RIGHT]) == EagerComparison((5,))


def test_double_precision_decides() -> None:
    got = passed(sample(1.001, 2.0))
    found = compare_with_eager([got], [passed(sample(1.0, 2.0), exact=sample(1.0000001, 2.0))])
    assert (len(found.differences), found.in_double, found.exact) == (1, True, (1.0000001, 2.0))
    between = passed(sample(1.0, 2.0), exact=sample(1.0005, 2.0))
    assert compare_with_eager([got], [between]) == EagerComparison((5,), rounding=1)


@pytest.mark.parametrize(("error", "calls", "is_wrong"), [(1e-3, 5, True), (1e-3, 20_000, False), (0.5, 20_000, True)])
def test_without_double_precision_the_bound_grows_with_the_calls(error: float, calls: int, is_wrong: bool) -> None:
    eager = passed(sample(1.0, 2.0), index=calls)
    found = compare_with_eager([passed(sample(1.0, 2.0 + 2 * error))], [eager])
    assert bool(found.differences) == is_wrong
    assert found.rounding == (not is_wrong)
    assert not found.in_double


def test_a_missing_gradient_is_wrong() -> None:
    found = compare_with_eager([passed(None)], [passed(sample(1.0, 2.0), exact=sample(1.0, 2.0))])
    assert (found.differences[0].got, found.differences[0].right) == ((), (1.0, 2.0))


def test_a_gradient_that_is_not_finite_without_compilation_decides_nothing() -> None:
    diverged = passed(sample(float("nan"), 2.0), exact=sample(1e-7, 2.0))
    assert compare_with_eager([RIGHT, RIGHT], [RIGHT, diverged]) == EagerComparison((5,), reason=NOT_FINITE)
    found = compare_with_eager([passed(sample(float("nan"), 2.0))], [passed(sample(1.0, 2.0), exact=sample(1.0, 2.0))])
    assert len(found.differences) == 1


def test_other_leaves_are_not_compared() -> None:
    assert compare_with_eager([RIGHT], [passed(sample(1.0, 2.0), leaf=sample(1.0, 5.0))]).reason == OTHER_LEAF
    longer = passed(sample(1.0, 2.0, 3.0), leaf=sample(1.0, 2.0, 3.0))
    assert compare_with_eager([RIGHT, RIGHT], [RIGHT, longer]) == EagerComparison((5,), reason=OTHER_LEAF)


def test_runs_of_other_lengths() -> None:
    assert "different numbers of backward passes, 2 and 1" in compare_with_eager([RIGHT, RIGHT], [RIGHT]).reason
    assert (
        compare_with_eager([passed(None, failed=True)], [RIGHT]).reason == "only the compiled run raised in this pass"
    )


def test_runs_agree_up_to_a_pass() -> None:
    other = passed(sample(3.0, 2.0))
    assert agree_in(0, [RIGHT, other], [RIGHT, RIGHT])
    assert not agree_in(1, [RIGHT, other], [RIGHT, RIGHT])
    assert not agree_in(1, [RIGHT], [RIGHT, RIGHT])


def test_another_run_is_labelled_as_the_first() -> None:
    other = Pass(9, (), {0: (8, None, sample(1.0, 2.0)), 1: (2, None, None)}, False)
    assert labelled_as([other], [RIGHT]) == [Pass(5, (), {0: (3, None, sample(1.0, 2.0))}, False)]
