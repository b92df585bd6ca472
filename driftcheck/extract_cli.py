"""The command `extract`: what it takes, what it shows before the model is loaded, and how a run ends."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from driftcheck.errors import DriftcheckError

if TYPE_CHECKING:
    from pathlib import Path

    from driftcheck.extract.architecture import Architecture
    from driftcheck.extract.data import Rows
    from driftcheck.extract.engine import CaptureSettings, EngineSettings
    from driftcheck.extract.extraction import Capturing, Result
    from driftcheck.extract.resume import Names

EXTRACT = "Reads prompts with a model and writes the hidden states of chosen layers, to train draft models with."
EXTRACT_USAGE = """\
driftcheck extract MODEL DATA --output DIR [options]
       driftcheck extract merge DIR... --output DIR"""
EXTRACT_NOTES = """\
MODEL is a folder or a name on the Hugging Face hub, as for vllm. DATA is a
.jsonl, .parquet or .arrow file, or a folder of them, whose rows have input_ids
and perhaps loss_mask, or messages, or text. It runs in the Python that has
vllm. The same command again goes on where the last one was, however that ended.
merge checks the files of finished runs and joins their manifests.

examples:
  driftcheck extract ./model prompts.jsonl --output states --plan
  driftcheck extract ./model prompts.parquet --output states --layers 2,16,29,31
  driftcheck extract ./model prompts --output states --shard 3/8

exit codes:
  0  every sample is there
  1  every sample is there that can be; errors.jsonl has the others
  2  could not go on: a line on stderr says why
"""


def add_extract(parser: argparse.ArgumentParser) -> None:
    """The arguments of `extract`."""
    parser.add_argument(
        "what", nargs="+", metavar="MODEL DATA", help="the model, and the prompts; or merge, and folders"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="the folder that the states go to")
    what = parser.add_argument_group("what is captured")
    what.add_argument(
        "--layers",
        default="auto",
        metavar="N,N,..",
        help="the layers after which states are taken, counted from 0 (default: auto, the third, the middle one, the"
        " third last and the last)",
    )
    what.add_argument(
        "--format",
        choices=("speculators", "safetensors"),
        default="speculators",
        help="speculators: .pt files as speculators 0.3 and 0.4 read them (the default); safetensors: as from 0.5 on",
    )
    what.add_argument("--limit", type=_positive, metavar="N", help="the first rows only")
    what.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N", help="part I of N, counted from 0")
    what.add_argument(
        "--too-long", choices=("truncate", "skip"), default="truncate", help="for long prompts (default: truncate)"
    )
    what.add_argument(
        "--on-error",
        choices=("skip", "stop"),
        default="skip",
        help="for rows that are no prompts and samples that fail (default: skip)",
    )
    engine = parser.add_argument_group("the engine, as vllm names them")
    engine.add_argument("--tensor-parallel-size", type=_positive, default=1, metavar="N", help="over how many GPUs")
    engine.add_argument("--pipeline-parallel-size", type=_positive, default=1, metavar="N", help="in how many stages")
    engine.add_argument(
        "--max-model-len", type=_positive, metavar="N", help="the longest prompt (default: as the model)"
    )
    engine.add_argument("--max-num-batched-tokens", type=_positive, metavar="N", help="tokens a step")
    engine.add_argument("--gpu-memory-utilization", type=float, metavar="F", help="the share that vllm may take")
    engine.add_argument("--dtype", default="auto", help="what is computed and written (default: auto)")
    engine.add_argument("--engine", action="append", default=[], metavar="KEY=VALUE", help="any other argument of LLM")
    running = parser.add_argument_group("the run")
    running.add_argument("--plan", action="store_true", help="check and show what would be done, and stop")
    running.add_argument("--no-smoke", action="store_true", help="leave out the run in small, with two layers")
    running.add_argument("--force", action="store_true", help="go on although the installed vllm does not fit")
    running.add_argument("--host-memory", type=_bytes, metavar="SIZE", help="for samples to be written (default: 4G)")
    running.add_argument(
        "--writers", type=_positive, metavar="N", help="threads that write (default: half as many as cores, 4 to 16)"
    )
    running.add_argument(
        "--ray",
        type=_positive,
        metavar="N",
        help="have a Ray cluster run N shards, try those again that fail, and join them",
    )
    running.add_argument(
        "--rate", type=_rate, default=10_000.0, metavar="N", help="tokens a second that the plan reckons with"
    )


def run_extract(options: argparse.Namespace) -> int:
    """Extracts, or joins manifests; gives the exit code."""
    from pathlib import Path

    if options.what[0] == "merge" and len(options.what) > 1:
        from driftcheck.extract.merging import merge

        samples = merge([Path(folder) for folder in options.what[1:]], Path(options.output))
        _show([("result", f"{samples:,} samples, all as their manifests say")])
        return 0
    if len(options.what) != 2:
        raise DriftcheckError("name a model and its prompts: driftcheck extract MODEL DATA --output DIR")
    model, data = options.what
    return _run(model, Path(data), options) if options.ray is None else _run_on_ray(options)


def _run_on_ray(options: argparse.Namespace) -> int:
    """Has a cluster run the shards, and joins them."""
    import functools
    from pathlib import Path

    from driftcheck.extract.clusters import run_shards
    from driftcheck.extract.merging import merge

    if options.shard != (0, 1) or options.plan:
        raise DriftcheckError("--ray makes shards of its own: leave out --shard and --plan")
    # Processes of a cluster have working folders of their own.
    output = Path(options.output).absolute()
    model, data = options.what
    options.what = [str(Path(model).absolute()) if Path(model).is_dir() else model, str(Path(data).absolute())]
    work = functools.partial(_run_shard, options, str(output), options.ray)
    failed: dict[int, str] = {}
    code = 0
    for part, ended in run_shards(
        work, options.ray, gpus=options.tensor_parallel_size * options.pipeline_parallel_size
    ):
        _show([(f"shard {part}/{options.ray}", "is done" if isinstance(ended, int) else f"failed: {ended}")])
        if isinstance(ended, int):
            code = max(code, ended)
        else:
            failed[part] = ended
    if failed:
        first = min(failed)
        raise DriftcheckError(
            f"{len(failed)} of {options.ray} shards failed, {first}/{options.ray} with: {failed[first]}; the same"
            " command goes on with them"
        )
    _show([("result", f"{merge([output], output):,} samples, all as their manifests say")])
    return code


def _run_shard(options: argparse.Namespace, output: str, count: int, part: int) -> int:
    """One shard, in a process of its own; raises RuntimeError where it can't go on, which Ray can hand back."""
    from pathlib import Path

    model, data = options.what
    given = {**vars(options), "shard": (part, count), "output": output}
    try:
        return _run(model, Path(data), argparse.Namespace(**given))
    except DriftcheckError as error:
        raise RuntimeError(str(error)) from None


def _run(model: str, data: Path, options: argparse.Namespace) -> int:
    from pathlib import Path

    from driftcheck.extract.architecture import architecture_of, model_folder, revision_of
    from driftcheck.extract.data import Limits, read_rows, tokenizer_of
    from driftcheck.extract.engine import CaptureSettings, EngineSettings, engine_arguments
    from driftcheck.extract.environment import environment
    from driftcheck.extract.extraction import Job, extract, locked
    from driftcheck.extract.layouts import Shape
    from driftcheck.extract.meter import Meter
    from driftcheck.extract.plan import planned, planned_dtype, writers
    from driftcheck.extract.resume import fingerprint, names_of, written

    extra = _engine_arguments(options.engine)
    folder = model_folder(model, extra.get("revision"))
    architecture = architecture_of(folder)
    layers = architecture.chosen_layers(options.layers)
    longest = _longest(options.max_model_len, architecture)
    shape = Shape(len(layers), architecture.hidden_size, planned_dtype(options.dtype, architecture.dtype))
    limits = Limits(architecture.vocabulary, longest, is_truncated=options.too_long == "truncate")
    rows = read_rows(data, limits, tokenizer_of(model), shard=options.shard, limit=options.limit)
    output, names = Path(options.output), names_of(options.shard)
    done = written(output, names)
    plan = planned(
        rows.samples, done, shape, output, step=options.max_num_batched_tokens, host_memory=options.host_memory
    )
    versions = environment()
    _show([*versions.items(), *_about_rows(rows), *plan.lines(options.rate)])
    plan.check_disk(output)
    if rows.bad and options.on_error == "stop":
        raise DriftcheckError(f"{data}: row {rows.bad[0].number} {rows.bad[0].reason}")
    settings = EngineSettings(
        model,
        max_model_len=longest,
        tensor_parallel_size=options.tensor_parallel_size,
        pipeline_parallel_size=options.pipeline_parallel_size,
        max_num_batched_tokens=options.max_num_batched_tokens,
        gpu_memory_utilization=options.gpu_memory_utilization,
        dtype=options.dtype,
        extra=extra,
    )
    capture = CaptureSettings(
        output, layers, options.format, names.journal, plan.host_memory, options.writers or writers()
    )
    engine_arguments(settings)
    _check_release(is_forced=options.force)
    if plan.done < plan.samples and not options.no_smoke:
        _check_in_small(folder, settings, capture, architecture.vocabulary, names)
    if options.plan:
        return 0
    description = {
        "version": 1,
        "model": model,
        "revision": revision_of(folder),
        "architecture": architecture.name,
        "layers": list(layers),
        "hidden_size": shape.hidden_size,
        "dtype": shape.dtype,
        "format": options.format,
        "vllm": versions.get("vllm"),
        "torch": versions.get("torch"),
        "engine": {
            "max_model_len": longest,
            "max_num_batched_tokens": options.max_num_batched_tokens,
            "tensor_parallel_size": options.tensor_parallel_size,
            "pipeline_parallel_size": options.pipeline_parallel_size,
            **extra,
        },
        "data": {"path": str(data), "shard": list(options.shard), "prompts": fingerprint(rows.samples)},
    }
    job = Job(
        folder=output,
        names=names,
        layout=options.format,
        description=description,
        samples=rows.samples,
        batch_tokens=plan.batch_tokens,
        bad={row.number: row.reason for row in rows.bad},
        stops_on_error=options.on_error == "stop",
    )
    with locked(output, names):
        result = extract(job, _engine(settings, capture, description), Meter(plan.tokens))
    _show(
        [
            ("result", _ended(result, names.errors)),
            ("peak", f"{result.most_memory:,} bytes waited to be written at most"),
        ]
    )
    return 1 if result.failed else 0


def _check_release(*, is_forced: bool) -> None:
    """Raises DriftcheckError where the installed vLLM is not what extraction needs."""
    from driftcheck.extract.gate import drift

    try:
        findings = list(drift())
    except DriftcheckError as error:
        if not is_forced:
            raise DriftcheckError(f"what extraction uses of vllm can't be audited: {error}; --force goes on") from error
        return
    for finding in findings:
        place = finding.location.place
        _show([("drift", f"{place} {finding.kind.value}: {finding.message}")])
    if findings and not is_forced:
        raise DriftcheckError(
            f"the installed vllm is not what extraction needs, in {len(findings)} places; --force goes on all the same"
        )
    _show([("audit", f"{len(findings)} of what extraction uses of vllm does not fit" if findings else "all fits")])


def _check_in_small(
    folder: Path, settings: EngineSettings, capture: CaptureSettings, vocabulary: int, names: Names
) -> None:
    """Raises DriftcheckError where two layers of the model do not run; errors.jsonl gets the traceback."""
    import json
    import time

    from driftcheck.extract.smoke import SmokeError, smoke_run

    began = time.monotonic()
    try:
        smoke_run(folder, settings, capture, vocabulary)
    except SmokeError as error:
        path = capture.folder / names.errors
        entry = {"sample": None, "stage": "smoke", "error": str(error), "traceback": error.traceback}
        path.write_text(json.dumps(entry) + "\n", encoding="utf-8")
        raise DriftcheckError(f"{error}; {path} has the traceback, --no-smoke leaves it out") from error
    _show([("smoke run", f"two layers ran and were written, in {time.monotonic() - began:.0f} s")])


def _engine(settings: EngineSettings, capture: CaptureSettings, planned: Mapping[str, Any]) -> Callable[[], Capturing]:
    """A function that loads the model."""

    def load() -> Capturing:
        from driftcheck.extract.engine import Engine

        engine = Engine(settings, capture)
        for name, found in (("dtype", engine.shape.dtype), ("hidden_size", engine.shape.hidden_size)):
            if found != planned[name]:
                raise DriftcheckError(
                    f"vllm computes with {name} {found}, and {planned[name]} was planned; name it with --dtype"
                )
        return engine

    return load


def _about_rows(rows: Rows) -> list[tuple[str, str]]:
    notes = [f"{rows.total:,} rows"]
    if rows.truncated:
        notes.append(f"{rows.truncated:,} too long and cut")
    if rows.left_out:
        notes.append(f"{rows.left_out:,} too long and left out")
    if rows.bad:
        first = rows.bad[0]
        notes.append(f"{len(rows.bad):,} no prompts (row {first.number} {first.reason})")
    return [("data", ", ".join(notes))]


def _ended(result: Result, errors: str) -> str:
    there = f", {result.there:,} were there" if result.there else ""
    failed = f", {len(result.failed):,} failed ({errors} says why)" if result.failed else ""
    return f"{result.written:,} samples written{there}{failed}"


def _show(entries: Sequence[tuple[str, str]]) -> None:
    from driftcheck.output import write_stdout
    from driftcheck.report.harmless import harmless

    write_stdout("".join(f"{harmless(name):<12} {harmless(value)}\n" for name, value in entries))
    if sys.stdout is not None:
        sys.stdout.flush()


def _longest(wanted: int | None, architecture: Architecture) -> int:
    if wanted is not None:
        return wanted
    if architecture.longest is None:
        raise DriftcheckError(f"{architecture.name} does not say how long a prompt may be: give --max-model-len")
    return architecture.longest


def _engine_arguments(entries: Sequence[str]) -> dict[str, Any]:
    """What `--engine KEY=VALUE` says: values are JSON where they can be, else text."""
    import json

    arguments: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key.isidentifier():
            raise DriftcheckError(f"--engine {entry}: give an argument of vllm.LLM and its value, KEY=VALUE")
        try:
            arguments[key] = json.loads(value)
        except ValueError:
            arguments[key] = {"True": True, "False": False, "None": None}.get(value, value)
    return arguments


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return number


def _rate(text: str) -> float:
    return float(_positive(text))


def _shard(text: str) -> tuple[int, int]:
    part, _, count = text.partition("/")
    if not (part.isdigit() and count.isdigit() and int(part) < int(count)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 0/8, with parts counted from 0")
    return int(part), int(count)


def _bytes(text: str) -> int:
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
    number = text.rstrip("KMGTkmgt")
    unit = text[len(number) :].upper()
    if not number.isdigit() or unit not in units or int(number) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 512M or 8G")
    return int(number) * units[unit]
