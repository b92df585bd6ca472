"""Prompts as files have them, and rows that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftcheck.errors import DriftcheckError
from driftcheck.extract.data import BadRow, Limits, Rows, read_rows

LIMITS = Limits(vocabulary=100, longest=8)


class Words:
    """A tokenizer that takes each character for a token, and writes a turn as `<role>content|`."""

    chat_template = "yes"

    def encode(self, text: str) -> list[int]:
        return [ord(character) % 100 for character in text]

    def apply_chat_template(
        self, messages: list[dict[str, str]], *, tokenize: bool, add_generation_prompt: bool
    ) -> Any:
        assert tokenize
        if any(message["role"] not in {"system", "user", "assistant"} for message in messages):
            raise ValueError("unknown role")
        text = "".join(f"<{message['role'][0]}{message['content']}|" for message in messages)
        return {"input_ids": self.encode(text + "<a" * add_generation_prompt)}


def no_tokenizer() -> Any:
    raise AssertionError("nothing here needs a tokenizer")


def read(folder: Path, *rows: object, limits: Limits = LIMITS, tokenizer: Callable[[], Any] = no_tokenizer) -> Rows:
    path = folder / "data.jsonl"
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return read_rows(path, limits, tokenizer)


def test_tokens_and_mask(tmp_path: Path) -> None:
    rows = read(tmp_path, {"input_ids": [1, 2, 99], "loss_mask": [0, 1, 1], "other": "x"}, {"input_ids": [0]})
    assert [(each.number, list(each.tokens), each.loss_mask) for each in rows.samples] == [
        (0, [1, 2, 99], b"\0\1\1"),
        (1, [0], None),
    ]
    assert (rows.bad, rows.total) == ((), 2)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("", "is an empty line"),
        ("{", "is no JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)"),
        ([1], "is no object but list"),
        ({}, "has neither input_ids nor messages, conversations or text"),
        ({"input_ids": []}, "has no tokens"),
        ({"input_ids": "abc"}, "input_ids is no list but str"),
        ({"input_ids": [1, 100]}, "token 1 is 100, and the model knows 0 to 99"),
        ({"input_ids": [-1]}, "token 0 is -1, and the model knows 0 to 99"),
        ({"input_ids": [1.0]}, "token 0 is no whole number but float"),
        ({"input_ids": [True]}, "token 0 is no whole number but bool"),
        ({"input_ids": [None]}, "token 0 is no whole number but null"),
        ({"input_ids": [1], "loss_mask": [0, 1]}, "loss_mask has 2 entries for 1 tokens"),
        ({"input_ids": [1], "loss_mask": [2]}, "loss_mask has 2 at 0, neither 0 nor 1"),
        ({"input_ids": [1], "loss_mask": 1}, "loss_mask is no list but int"),
        ({"text": 5}, "text is no string but int"),
        ({"messages": []}, "messages is no list of turns"),
        ({"messages": ["hello"]}, "message 0 is no object but str"),
        ({"messages": [{"role": "user"}]}, "message 0 lacks a role or a content"),
    ],
)
def test_a_bad_row_is_named(row: object, reason: str, tmp_path: Path) -> None:
    rows = read(tmp_path, {"input_ids": [1]}, row, {"input_ids": [2]})
    assert rows.bad == (BadRow(1, reason),)
    assert [sample.number for sample in rows.samples] == [0, 2]


def test_long_prompts_are_cut_or_left_out_and_counted(tmp_path: Path) -> None:
    given = ({"input_ids": [1] * 9, "loss_mask": [0] * 8 + [1]}, {"input_ids": [1] * 8})
    cut = read(tmp_path, *given)
    assert [(len(each.tokens), len(each.mask)) for each in cut.samples] == [(8, 8), (8, 8)]
    assert (cut.truncated, cut.left_out) == (1, 0)
    left = read(tmp_path, *given, limits=Limits(100, 8, is_truncated=False))
    assert [each.number for each in left.samples] == [1]
    assert (left.truncated, left.left_out) == (0, 1)


def test_text_becomes_tokens(tmp_path: Path) -> None:
    rows = read(tmp_path, {"text": "abc"}, tokenizer=Words)
    assert [(list(each.tokens), each.loss_mask) for each in rows.samples] == [([97, 98, 99], None)]


@pytest.mark.parametrize(
    "turns",
    [
        {"messages": [{"role": "user", "content": "h"}, {"role": "assistant", "content": "yo"}]},
        {"conversations": [{"from": "human", "value": "h"}, {"from": "gpt", "value": "yo"}]},
    ],
)
def test_the_mask_is_on_what_the_assistant_says(turns: object, tmp_path: Path) -> None:
    rows = read(tmp_path, turns, tokenizer=Words)
    (sample,) = rows.samples
    assert list(sample.tokens) == Words().encode("<uh|<ayo|")[:8]
    assert sample.loss_mask == b"\0\0\0\0\0\0\1\1"


def test_a_template_that_writes_a_turn_otherwise_later_is_refused(tmp_path: Path) -> None:
    class Forgetful(Words):
        def apply_chat_template(self, messages: Any, *, tokenize: bool, add_generation_prompt: bool) -> Any:
            kept = [{**each, "content": each["content"][-1:]} for each in messages[:-1]]
            return super().apply_chat_template(
                kept + messages[-1:], tokenize=tokenize, add_generation_prompt=add_generation_prompt
            )

    turn = [{"role": "user", "content": "h"}, {"role": "assistant", "content": "yo"}]
    rows = read(tmp_path, {"messages": turn}, {"messages": turn * 2}, tokenizer=Forgetful)
    assert [sample.number for sample in rows.samples] == [0]
    assert rows.bad[0].reason.startswith("message 1: the chat template writes it otherwise when more follows")


def test_what_a_template_refuses_is_a_bad_row(tmp_path: Path) -> None:
    rows = read(tmp_path, {"messages": [{"role": "robot", "content": "h"}]}, tokenizer=Words)
    assert rows.bad == (BadRow(0, "the chat template refuses it: unknown role"),)


def test_shards_and_limits_keep_the_numbers(tmp_path: Path) -> None:
    read(tmp_path, *({"input_ids": [number]} for number in range(10)))
    parts = [read_rows(tmp_path / "data.jsonl", LIMITS, no_tokenizer, shard=(part, 3), limit=8) for part in range(3)]
    assert [[sample.number for sample in part.samples] for part in parts] == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert all(list(sample.tokens) == [sample.number] for part in parts for sample in part.samples)


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    for name, token in (("b", 2), ("a", 1)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"input_ids": [token]}) + "\n", encoding="utf-8")
    rows = read_rows(tmp_path, LIMITS, no_tokenizer)
    assert [list(sample.tokens) for sample in rows.samples] == [[1], [2]]


def test_what_is_no_data_set_is_told(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "lost.jsonl", "there is no such data set"),
        (tmp_path, r"there is no \.jsonl, \.parquet or \.arrow file in it"),
        (Path(__file__), r"a data set is a \.jsonl, \.parquet or \.arrow file, or a folder of them"),
    ):
        with pytest.raises(DriftcheckError, match=message):
            read_rows(path, LIMITS, no_tokenizer)
