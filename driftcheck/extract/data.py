# mypy: disable-error-code="import-not-found,import-untyped"
"""Reads prompts: JSON Lines, Parquet, Arrow, or a folder of them, as tokens or as text that becomes tokens."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract.layouts import Sample

_LINES = (".jsonl", ".ndjson", ".json")
_TABLES = (".parquet", ".arrow")
_COLUMNS = ("input_ids", "loss_mask", "messages", "conversations", "text")
_ROLES = {"human": "user", "gpt": "assistant", "system": "system", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that is no prompt, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What a prompt has to keep to."""

    vocabulary: int
    longest: int
    is_truncated: bool = True
    """Whether a longer prompt is cut; else it is left out."""


@dataclass(frozen=True, slots=True)
class Rows:
    """All that was read: the prompts, the rows that are none, and how many were too long."""

    samples: tuple[Sample, ...]
    bad: tuple[BadRow, ...]
    truncated: int
    left_out: int
    total: int


def read_rows(
    path: Path,
    limits: Limits,
    tokenizer: Callable[[], Any],
    *,
    shard: tuple[int, int] = (0, 1),
    limit: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Rows:
    """The prompts of a data set, or of one part in `shard[1]`; `tokenizer` is called where there is text only.

    A sample's number is that of its row, counted from 0 over the whole data set.
    """
    samples: list[Sample] = []
    bad: list[BadRow] = []
    truncated = left_out = total = 0
    reader = _Reader(limits.vocabulary, tokenizer)
    for number, row in enumerate(_rows(path)):
        if limit is not None and number >= limit:
            break
        if number % shard[1] != shard[0]:
            continue
        total += 1
        advance()
        try:
            sample = reader.sample(number, row)
        except _BadRowError as error:
            bad.append(BadRow(number, str(error)))
            continue
        if len(sample.tokens) > limits.longest:
            if not limits.is_truncated:
                left_out += 1
                continue
            truncated += 1
            mask = None if sample.loss_mask is None else sample.loss_mask[: limits.longest]
            sample = Sample(number, sample.tokens[: limits.longest], mask)
        samples.append(sample)
    return Rows(tuple(samples), tuple(bad), truncated, left_out, total)


class _BadRowError(Exception):
    pass


class _Reader:
    def __init__(self, vocabulary: int, tokenizer: Callable[[], Any]) -> None:
        self._vocabulary = vocabulary
        self._make_tokenizer = tokenizer
        self._tokenizer: Any = None

    def sample(self, number: int, row: object) -> Sample:
        if isinstance(row, _Unreadable):
            raise _BadRowError(row.reason)
        if not isinstance(row, Mapping):
            raise _BadRowError(f"is no object but {_named(row)}")
        if row.get("input_ids") is not None:
            tokens = self._tokens(row["input_ids"])
            return Sample(number, tokens, _mask(row.get("loss_mask"), len(tokens)))
        turns = row.get("messages") if row.get("messages") is not None else row.get("conversations")
        if turns is not None:
            return self._conversation(number, turns)
        if row.get("text") is not None:
            if not isinstance(row["text"], str):
                raise _BadRowError(f"text is no string but {_named(row['text'])}")
            return Sample(number, self._tokens(list(self._tokenize(row["text"]))))
        raise _BadRowError("has neither input_ids nor messages, conversations or text")

    def _tokens(self, values: object) -> array[int]:
        if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
            raise _BadRowError(f"input_ids is no list but {_named(values)}")
        if not values:
            raise _BadRowError("has no tokens")
        for place, value in enumerate(values):
            if not isinstance(value, int) or isinstance(value, bool):
                raise _BadRowError(f"token {place} is no whole number but {_named(value)}")
            if not 0 <= value < self._vocabulary:
                raise _BadRowError(f"token {place} is {value}, and the model knows 0 to {self._vocabulary - 1}")
        return array("i", values)

    def _tokenize(self, text: str) -> list[int]:
        return list(self._loaded().encode(text))

    def _loaded(self) -> Any:
        if self._tokenizer is None:
            self._tokenizer = self._make_tokenizer()
        return self._tokenizer

    def _conversation(self, number: int, turns: object) -> Sample:
        messages = _messages(turns)
        whole = self._rendered(messages, is_open=False)
        mask = bytearray(len(whole))
        for place, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            before = self._rendered(messages[:place], is_open=True)
            after = self._rendered(messages[: place + 1], is_open=False)
            if whole[: len(before)] != before or whole[: len(after)] != after:
                raise _BadRowError(
                    f"message {place}: the chat template writes it otherwise when more follows, so that its tokens"
                    " can't be told; give input_ids and loss_mask"
                )
            mask[len(before) : len(after)] = b"\1" * (len(after) - len(before))
        return Sample(number, self._tokens(whole), bytes(mask))

    def _rendered(self, messages: list[dict[str, str]], *, is_open: bool) -> list[int]:
        tokenizer = self._loaded()
        if getattr(tokenizer, "chat_template", None) is None and not hasattr(type(tokenizer), "apply_chat_template"):
            raise DriftcheckError("the model's tokenizer has no chat template; give input_ids or text")
        try:
            found = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=is_open)
        except Exception as error:
            reason = str(error).strip() or type(error).__name__
            raise _BadRowError(f"the chat template refuses it: {reason}") from error
        return list(found["input_ids"] if isinstance(found, Mapping) else found)


def _messages(turns: object) -> list[dict[str, str]]:
    if not isinstance(turns, Sequence) or isinstance(turns, (str, bytes)) or not turns:
        raise _BadRowError("messages is no list of turns")
    messages = []
    for place, turn in enumerate(turns):
        if not isinstance(turn, Mapping):
            raise _BadRowError(f"message {place} is no object but {_named(turn)}")
        role = turn.get("role", turn.get("from"))
        content = turn.get("content", turn.get("value"))
        if not isinstance(role, str) or not isinstance(content, str):
            raise _BadRowError(f"message {place} lacks a role or a content")
        messages.append({"role": _ROLES.get(role, role), "content": content})
    return messages


def _mask(values: object, length: int) -> bytes | None:
    if values is None:
        return None
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        raise _BadRowError(f"loss_mask is no list but {_named(values)}")
    if len(values) != length:
        raise _BadRowError(f"loss_mask has {len(values)} entries for {length} tokens")
    for place, value in enumerate(values):
        if value not in (0, 1):
            raise _BadRowError(f"loss_mask has {value!r} at {place}, neither 0 nor 1")
    return bytes(map(int, values))


def _named(value: object) -> str:
    return "null" if value is None else type(value).__name__


@dataclass(frozen=True, slots=True)
class _Unreadable:
    reason: str


def _rows(path: Path) -> Iterator[object]:
    """The rows of a file, or of a folder's files one after another."""
    files = _files(path)
    for file in files:
        if file.suffix in _LINES:
            yield from _lines(file)
        else:
            yield from _table(file)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if path.suffix not in _LINES + _TABLES:
            raise DriftcheckError(f"{path}: a data set is a .jsonl, .parquet or .arrow file, or a folder of them")
        return [path]
    if not path.is_dir():
        raise DriftcheckError(f"{path}: there is no such data set")
    state = path / "state.json"
    if state.is_file():  # what `Dataset.save_to_disk` has written
        try:
            names = [entry["filename"] for entry in json.loads(state.read_text(encoding="utf-8"))["_data_files"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DriftcheckError(f"{state} can't be read: {error}") from error
        return [path / name for name in names]
    if (path / "dataset_dict.json").is_file():
        raise DriftcheckError(f"{path} holds several data sets: name one of its folders, such as {path / 'train'}")
    for kind in (".parquet", ".arrow", ".jsonl", ".ndjson"):
        files = sorted(path.rglob(f"*{kind}"))
        if files:
            return files
    raise DriftcheckError(f"{path}: there is no .jsonl, .parquet or .arrow file in it")


def _lines(path: Path) -> Iterator[object]:
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.strip():
                    yield _Unreadable("is an empty line")
                    continue
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    yield _Unreadable(f"is no JSON: {error}")
    except OSError as error:
        raise DriftcheckError(f"{path} can't be read: {error.strerror}") from error


def _table(path: Path) -> Iterator[object]:
    try:
        import pyarrow  # noqa: ICN001 (house rule: nothing is abbreviated)
        from pyarrow import parquet
    except ImportError:
        raise DriftcheckError(f"reading {path.name} needs pyarrow: pip install pyarrow") from None
    try:
        if path.suffix == ".parquet":
            table = parquet.ParquetFile(path)
            names = [name for name in table.schema_arrow.names if name in _COLUMNS]
            batches = table.iter_batches(batch_size=256, columns=names)
        else:
            batches = _arrow_batches(pyarrow, path)
        for batch in batches:
            kept = batch.select([name for name in batch.schema.names if name in _COLUMNS])
            yield from kept.to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise DriftcheckError(f"{path} can't be read: {' '.join(str(error).split())}") from error


def _arrow_batches(pyarrow: Any, path: Path) -> Iterator[Any]:
    """The batches of an Arrow file, in the format of streams, as data sets have it, or in that of files."""
    source = pyarrow.memory_map(str(path))
    try:
        yield from pyarrow.ipc.open_stream(source)
    except pyarrow.ArrowInvalid:
        source.seek(0)
        reader = pyarrow.ipc.open_file(source)
        for place in range(reader.num_record_batches):
            yield reader.get_batch(place)


def tokenizer_of(model: str) -> Callable[[], Any]:
    """A function that loads a model's tokenizer."""

    def load() -> Any:
        try:
            from transformers import AutoTokenizer
        except ImportError:
            raise DriftcheckError("turning text into tokens needs transformers, which vLLM brings along") from None
        try:
            return AutoTokenizer.from_pretrained(model, trust_remote_code=True)
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise DriftcheckError(f"the tokenizer of {model} can't be loaded: {reason}") from error

    return load
