# mypy: disable-error-code="import-not-found"
"""What a model's config.json says of its language model, read without torch and before anything is loaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract.resume import read_json

CONFIG = "config.json"
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".msgpack", ".h5")
_INDEX = ".index.json"
_SEEN_OF_A_FILE = 1 << 16
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


@dataclass(frozen=True, slots=True)
class Architecture:
    """The sizes that a plan needs."""

    name: str
    layers: int
    hidden_size: int
    vocabulary: int
    dtype: str | None
    longest: int | None
    """How many tokens the model was made for, None where its configuration does not say."""

    def chosen_layers(self, text: str) -> tuple[int, ...]:
        """The layers that `2,30,58,60` or `auto` stands for; raises DriftcheckError for those that there are not."""
        if text == "auto":
            last = self.layers - 1
            chosen = (min(2, last), self.layers // 2, max(self.layers - 3, 0), last)
            return tuple(sorted(set(chosen)))
        try:
            numbers = tuple(int(part) for part in text.split(","))
        except ValueError:
            raise DriftcheckError(f"--layers {text}: give numbers such as 2,30,58,60, or auto") from None
        for number in numbers:
            if not 0 <= number < self.layers:
                raise DriftcheckError(f"--layers {text}: {self.name} has the layers 0 to {self.layers - 1}")
        if len(set(numbers)) < len(numbers):
            raise DriftcheckError(f"--layers {text}: a layer stands there twice")
        return numbers


def model_folder(model: str, revision: str | None = None) -> Path:
    """The folder with a model's configuration: the model itself, or what the Hugging Face cache has or gets of it."""
    if Path(model).is_dir():
        return Path(model)
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise DriftcheckError(f"{model} is no folder, and huggingface_hub, which would get it, is missing") from None
    try:
        patterns = ["*.json", "*.py", "*.jinja", "*.model", "*.txt", "tiktoken*"]
        return Path(snapshot_download(model, revision=revision, allow_patterns=patterns))
    except Exception as error:  # whatever goes wrong with the network
        reason = str(error).strip() or type(error).__name__
        raise DriftcheckError(f"{model} is no folder and can't be got: {reason}") from error


def revision_of(folder: Path) -> str:
    """Stands for a model's content: the commit of one from the hub, else a hash.

    Of the weights it has the names, the sizes, the index, and 64 KiB out of the middle of each file: all of them would
    take as long as loading the model, and other weights of the same shape differ everywhere.
    """
    if folder.parent.name == "snapshots":  # as the cache of the hub names its folders
        return folder.name
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        if path.name == CONFIG or path.name.endswith(_INDEX):
            digest.update(f"{path.name} ".encode() + path.read_bytes())
        elif path.suffix in WEIGHTS:
            size = path.stat().st_size
            digest.update(f"{path.name} {size} ".encode())
            with path.open("rb") as file:
                file.seek(max(size // 2 - _SEEN_OF_A_FILE // 2, 0), os.SEEK_SET)
                digest.update(file.read(_SEEN_OF_A_FILE))
    return digest.hexdigest()


def read_configuration(folder: Path) -> dict[str, Any]:
    """A model's config.json."""
    return read_json(folder / CONFIG, "holds no configuration of a model")


def language_part(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that describes the language model."""
    for name in _NESTED:
        nested = configuration.get(name)
        if isinstance(nested, dict):
            return language_part(nested)
    return dict(configuration)


def architecture_of(folder: Path) -> Architecture:
    """What a model's configuration says; raises DriftcheckError where sizes are missing."""
    configuration = read_configuration(folder)
    text = language_part(configuration)
    names = configuration.get("architectures") or [configuration.get("model_type", "the model")]
    sizes = {name: _first_number(text, *names) for name, names in _SIZES.items()}
    for name, size in sizes.items():
        if size is None and name != "longest":
            raise DriftcheckError(f"{folder / CONFIG} does not say {_SIZES[name][0]}")
    dtype = text.get("dtype") or text.get("torch_dtype") or configuration.get("dtype")
    return Architecture(
        name=str(names[0]),
        layers=sizes["layers"] or 0,
        hidden_size=sizes["hidden_size"] or 0,
        vocabulary=sizes["vocabulary"] or 0,
        dtype=str(dtype or configuration.get("torch_dtype") or "") or None,
        longest=sizes["longest"],
    )


_SIZES = {
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "vocabulary": ("vocab_size",),
    "longest": ("max_position_embeddings", "n_positions", "max_sequence_length", "model_max_length"),
}


def _first_number(configuration: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = configuration.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return None
