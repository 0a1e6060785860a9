"""The page of the benchmarks keeps what a run does not measure."""

from __future__ import annotations

from benchmarks.page import with_sections

PAGE = "# Head\n\nOld.\n\n## One\n\n1\n\n### Part\n\n## By hand\n\ntext\n## Two\n\n2\n"


def test_measured_sections_replace_those_of_the_same_heading() -> None:
    found = with_sections(PAGE, ["## One\n\nnew"], "# Head\n\nNew.\n")
    assert found == "# Head\n\nNew.\n\n## One\n\nnew\n\n## By hand\n\ntext\n\n## Two\n\n2\n"


def test_a_new_section_follows_the_one_that_is_measured_before_it() -> None:
    found = with_sections(PAGE, ["## One\n\n1", "## Added\n\nx"])
    assert found.index("## One") < found.index("## Added") < found.index("## By hand")
    assert with_sections(PAGE, ["## Added\n\nx"]).endswith("## Two\n\n2\n\n## Added\n\nx\n")
    assert with_sections(found, ["## Two\n\n3"]).startswith("# Head\n\nOld.\n\n## One")
