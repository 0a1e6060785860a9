"""Checks the front matter of the pages, and the index that is generated from it."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest
from support.folders import DATA

from tensorlens.diagnostics.shared.rejected import ROLES, labels_of
from tensorlens.diagnostics.shared.role_names import ROLE_NAMES
from tensorlens.records import error_messages
from tensorlens.records.error_messages import INDEX
from tools.error_index import FAMILIES, PAGES, PageError, build, read_page

PAGE = (PAGES / "inplace_and_views" / "leaf_modified_inplace.md").read_text(encoding="utf-8")


def wrong(tmp_path: Path, text: str, family: str = "hooks", stem: str = "leaf_modified_inplace") -> str:
    """Returns the error of a wrong page."""
    path = tmp_path / family / f"{stem}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PageError) as error:
        read_page(path)
    return str(error.value)


def test_the_index_is_up_to_date() -> None:
    assert INDEX.read_text(encoding="utf-8") == build(), "make index"


HELP_AT = 'help_at = ["rejected_here", "rejected_here"]'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tier = 1", "tier = 1\ncolour = 'red'", "unknown key colour"),
        ("tier = 1", "tier = 4", "unknown tier 4"),
        ("tier = 1", "tier = '1'", "tier is a str"),
        ('kind = "error"', 'kind = "mistake"', "unknown kind mistake"),
        ('kind = "error"', 'kind = "silent"', "silent mistakes have neither"),
        ('"leaf_made_here"]', '"leaf_mad_here"]', "unknown role leaf_mad_here"),
        ('"leaf_made_here"]', '"leaf_made_here:mine"]', "unknown role leaf_made_here:mine"),
        ('"leaf_made_here"]', '"freed_here"]', "unknown role freed_here"),
        ("tier = 1", 'tier = 1\nwhen = "often"', "unknown condition often"),
        ("tier = 1", "tier = 1\norder = 3", "order is for silent mistakes"),
        ("why = ", "because = ", "unknown key because"),
        (HELP_AT, 'help_at = ["leaf_made_here"]', "help_at names a role, or an empty text, for each help"),
        (
            HELP_AT,
            'help_at = ["leaf_mad_here", ""]',
            "help_at names leaf_mad_here, which is no role of the page",
        ),
        (HELP_AT, "help_at = 3", "help_at is a int"),
        ('"as_result"]', '"as_resolt"]', "unknown edit as_resolt"),
        (', "as_result"]', "]", "edits names a function, or an empty text, for each help"),
        ("(?<!a view", "(?<!a view*", "look-behind"),
        ("## Why", "## Reason", "the sections are"),
        ("# leaf-modified", "# leaf-changed", "not the name of the file"),
        ("+++\n-->", "-->", "not a front matter"),
    ],
)
def test_a_wrong_page_is_an_error(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in PAGE
    assert said in wrong(tmp_path, PAGE.replace(old, new, 1))


def test_an_unknown_family_is_an_error(tmp_path: Path) -> None:
    assert "no family hocks" in wrong(tmp_path, PAGE, "hocks")


def test_a_finder_with_a_role_that_does_not_exist_fails() -> None:
    with pytest.raises(KeyError, match="leaf_mad_here"):
        labels_of(_Anything(), ("leaf_mad_here",))  # type: ignore[arg-type]


class _Anything:
    facts = op = None


def test_every_role_has_words() -> None:
    assert {role.partition(":")[0] for role in ROLES} <= ROLE_NAMES.keys()
    for path in PAGES.rglob("*.py"):
        named = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"\w+_here", node.value)
        }
        assert named <= ROLE_NAMES.keys(), path


def test_every_role_is_used() -> None:
    assert ROLES.keys() <= {role for entry in error_messages.entries() for role in entry.roles}


def test_a_message_matches_one_page_only() -> None:
    """The order of the pages cannot matter: at most one specific pattern matches each message that is known."""
    known = json.loads((DATA / "messages.json").read_text(encoding="utf-8"))
    messages = {item["message"] for item in known} | {entry.message for entry in error_messages.entries()}
    generic = {entry.code for entry in error_messages.entries() if entry.generic}
    for message in filter(None, messages):
        codes = error_messages.find(message)
        assert len([code for code in codes if code not in generic] or codes) == 1, message


def test_the_contracts_name_every_family() -> None:
    project = tomllib.loads((PAGES.parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [one for one in project["tool"]["importlinter"]["contracts"] if one["name"].startswith("Findings: no ")]
    named = [one.get("modules") or one["forbidden_modules"] for one in contracts]
    assert named == [[f"tensorlens.diagnostics.{family}" for family in FAMILIES]] * 2
