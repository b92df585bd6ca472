"""A run in small before the model is loaded: the same architecture with two layers and weights that mean nothing.

What would fail at run time, in the engine, the capture or the writer, fails here, after seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftcheck.errors import DriftcheckError
from driftcheck.extract.architecture import CONFIG, WEIGHTS, language_part, read_configuration
from driftcheck.extract.engine import CaptureSettings, Engine, EngineSettings
from driftcheck.extract.layouts import LAYOUTS, Sample
from driftcheck.extract.resume import Names

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LAYERS = 2
_MOST_EXPERTS = 16
_LARGE = 64 << 20
_COUNTS = ("num_hidden_layers", "n_layer", "num_layers")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")


class SmokeError(DriftcheckError):
    """What failed in small, with its traceback."""

    def __init__(self, text: str) -> None:
        super().__init__(f"the smoke run failed: {text.strip().splitlines()[-1]}")
        self.traceback = text


def shrunk(configuration: Mapping[str, Any], most_layers: int = LAYERS) -> dict[str, Any]:
    """A model's configuration with so many decoder layers, and few experts; all else is as it was."""
    whole: dict[str, Any] = json.loads(json.dumps(configuration))
    text = _language(whole)
    layers = next((text[name] for name in _COUNTS if isinstance(text.get(name), int)), 0)
    for name in _COUNTS:
        if name in text:
            text[name] = min(most_layers, text[name])
    for name, value in text.items():  # what is said layer by layer, such as `layer_types`
        if isinstance(value, list) and len(value) == layers > most_layers:
            text[name] = value[:most_layers]
    if isinstance(text.get("first_k_dense_replace"), int):
        text["first_k_dense_replace"] = min(1, text["first_k_dense_replace"])
    for name in _EXPERTS:
        if isinstance(text.get(name), int):
            text[name] = min(text[name], max(_MOST_EXPERTS, 2 * (text.get("n_group") or 1)))
    return whole


def _language(configuration: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that describes the language model, to be written to."""
    wanted = language_part(configuration)
    if configuration == wanted:
        return configuration
    for value in configuration.values():
        if isinstance(value, dict) and language_part(value) == wanted:
            return _language(value)
    return configuration


def model_in_small(folder: Path, target: Path, most_layers: int = LAYERS) -> None:
    """Copies a model without its weights, and with the configuration in small."""
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.iterdir()):
        is_index = path.name.endswith(".index.json")
        if path.is_file() and path.suffix not in WEIGHTS and not is_index and path.stat().st_size < _LARGE:
            shutil.copyfile(path, target / path.name)
    (target / CONFIG).write_text(
        json.dumps(shrunk(read_configuration(folder), most_layers), indent=1), encoding="utf-8"
    )


def smoke_run(folder: Path, settings: EngineSettings, capture: CaptureSettings, vocabulary: int) -> None:
    """Runs everything in small, in a process of its own; raises SmokeError for what fails.

    The files go where the real ones will, below a folder that is removed.
    """
    capture.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".smoke-", dir=capture.folder) as scratch:
        model = Path(scratch, "model")
        stages = settings.extra.get("pipeline_parallel_size", settings.pipeline_parallel_size)
        count = max(LAYERS, stages)  # each stage needs one
        model_in_small(folder, model, count)
        small = replace(settings, model=str(model), extra={**settings.extra, "load_format": "dummy"})
        layers = tuple(range(count))[-len(capture.layers) :]
        into = replace(capture, folder=Path(scratch), layers=layers, journal=Names().journal, host_memory=_LARGE)
        context = multiprocessing.get_context("spawn")  # nothing of this process, and above all no GPU, is touched
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(small, into, vocabulary, sender))
        process.start()
        sender.close()
        try:
            text: str | None = receiver.recv()
        except EOFError:
            process.join()
            text = f"its process ended with exit code {process.exitcode}"
        finally:
            receiver.close()
            process.join()
    if text is not None:
        raise SmokeError(text)


def _work(settings: EngineSettings, capture: CaptureSettings, vocabulary: int, sender: Connection) -> None:
    text: str | None = None
    try:
        _run(settings, capture, vocabulary)
    except BaseException:  # noqa: BLE001 (all of it is told to the process that waits)
        text = traceback.format_exc()
    sender.send(text)
    sender.close()


def _run(settings: EngineSettings, capture: CaptureSettings, vocabulary: int) -> None:
    layout = LAYOUTS[capture.layout]
    (capture.folder / layout.path(0)).parent.mkdir(parents=True, exist_ok=True)
    engine = Engine(settings, capture)
    lengths = [min(length, settings.max_model_len) for length in (1, 17, 17, 300, settings.max_model_len)]
    most = capture.host_memory // (2 * engine.shape.token)
    samples = [
        Sample(number, [(number // 2 + place) % vocabulary for place in range(min(length, most))])
        for number, length in enumerate(lengths)
    ]
    engine.capture(samples, ())
    outcome = engine.collect(flush=True)
    if outcome.failed:
        raise RuntimeError(outcome.failed[0].text)
    if outcome.missing or len(outcome.written) != len(samples):
        raise RuntimeError(f"of {len(samples)} samples {len(outcome.written)} were written")
    for record in outcome.written:
        with (capture.folder / record.path).open("rb") as file:
            if layout.read_checksums(file) != dict(record.crc32):
                raise RuntimeError(f"{record.path} is not what was written")
