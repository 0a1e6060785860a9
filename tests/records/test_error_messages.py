"""PyTorch's messages, of this version and earlier ones, lead to the right codes."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.folders import DATA

from tensorlens.records import error_messages

KNOWN = json.loads((DATA / "messages.json").read_text(encoding="utf-8"))
GENERIC = {entry.code for entry in error_messages.entries() if entry.generic}


def test_codes_are_unique() -> None:
    codes = [entry.code for entry in error_messages.entries()]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code) for code in codes)


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: str(known["code"]))
def test_message_leads_to_its_code(known: dict[str, str]) -> None:
    code, message = known["code"], known["message"]
    found = error_messages.find(message)
    assert code in found
    if code not in GENERIC:
        assert error_messages.classify(message) == code


@pytest.mark.parametrize("known", KNOWN[::7], ids=lambda known: str(known["code"]))
def test_a_traceback_around_it_does_not_matter(known: dict[str, str]) -> None:
    before = (
        'Traceback (most recent call last):\n  File "train.py", line 12, in step\n    loss.backward()\nValueError: '
    )
    assert known["code"] in error_messages.find(before + known["message"] + "\n")


def test_the_specific_comes_before_the_generic() -> None:
    for known in KNOWN:
        generic = [code in GENERIC for code in error_messages.find(known["message"])]
        assert generic == sorted(generic)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "list index out of range",
        "CUDA out of memory. Tried to allocate 2.00 GiB",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        "division by zero",
    ],
)
def test_other_messages_have_no_code(message: str) -> None:
    assert error_messages.classify(message) == ""


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert all(error_messages.entry(code) is not None for code in error_messages.find(text))


def test_an_unknown_code_has_no_entry() -> None:
    assert error_messages.entry("no-such-code") is None


@pytest.mark.parametrize(
    ("piece", "code"),
    [
        ('"element 0 of tensors does not require grad"', "element-does-not-require-grad"),
        ("Modified by an inplace operation", "saved-tensor-modified-inplace"),
    ],
)
def test_a_piece_of_a_message_is_enough(piece: str, code: str) -> None:
    assert error_messages.find(piece) == []
    assert code in error_messages.find_by_piece(piece)


def test_two_words_are_no_piece_of_a_message() -> None:
    assert error_messages.find_by_piece("require grad") == []


@pytest.mark.parametrize("noise", ["x", "x ", "a_1: [2, 3] ", "(", "'"])
def test_a_gigantic_message_takes_no_longer_than_a_long_one(noise: str) -> None:
    began = time.process_time()
    text = noise * 3_000_000
    message = "element 0 of tensors does not require grad and does not have a grad_fn"
    find = error_messages.find
    assert find(f"{message} {text}") == find(f"{text} {message}") == find(message) != []
    assert time.process_time() - began < 5
