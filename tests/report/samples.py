"""Reports like those of real audits, for the tests of every format."""

from __future__ import annotations

from dataclasses import replace

from driftcheck.model import (
    Certainty,
    ClientSummary,
    Count,
    Evidence,
    Finding,
    Fix,
    Kind,
    Location,
    Report,
    Severity,
    Skipped,
    TargetSummary,
    Unresolved,
    UsageCounts,
)

PATH = "speculators/data_generation/generator.py"
WORKER = "speculators/data_generation/worker.py"

SOURCES = (
    (PATH, 139, "            kv_cache_specs=kv_cache_spec,"),
    (PATH, 148, "        self.scheduler = Scheduler("),
    (WORKER, 30, "\thidden_states = self.get_input_embeddings(input_ids)"),
)

UNKNOWN_ARGUMENT = Finding(
    kind=Kind.UNKNOWN_ARGUMENT,
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    location=Location(PATH, 139, 13, 139, 27),
    symbol="vllm.v1.core.kv_cache_utils.get_kv_cache_config_from_groups",
    parameter="kv_cache_specs",
    message="get_kv_cache_config_from_groups() has no parameter 'kv_cache_specs'",
    raises="TypeError: unexpected keyword argument 'kv_cache_specs'",
    drift=True,
    evidence=Evidence(
        path="vllm/v1/core/kv_cache_utils.py",
        line=1069,
        signature="(vllm_config: VllmConfig, kv_cache_groups: list[Group], available_memory: int) -> KVCacheConfig",
        baseline_signature="(vllm_config: VllmConfig, kv_cache_groups: list[Group], "
        "kv_cache_specs: dict[str, KVCacheSpec], available_memory: int) -> KVCacheConfig",
    ),
    fingerprint="5e1f",
)

MISSING_ARGUMENT = Finding(
    kind=Kind.MISSING_ARGUMENT,
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    location=Location(PATH, 148, 26, 152, 10),
    symbol="vllm.v1.core.sched.scheduler.Scheduler.__init__",
    parameter="block_size",
    message="Scheduler() needs an argument 'block_size'",
    raises="TypeError: missing 1 required positional argument: 'block_size'",
    drift=True,
    evidence=Evidence(
        path="vllm/v1/core/sched/scheduler.py",
        line=64,
        signature="(vllm_config: VllmConfig, block_size: int, log_stats: bool = False) -> None",
        baseline_signature="(vllm_config: VllmConfig, log_stats: bool = False) -> None",
        confirmed_by="inspect.signature",
    ),
    rule="scheduler-block-size",
    fix=Fix("unsafe", "pass block_size=vllm_config.cache_config.block_size"),
    fingerprint="a0c3",
)

UNRESOLVED_ATTRIBUTE = Finding(
    kind=Kind.UNRESOLVED_ATTRIBUTE,
    severity=Severity.WARNING,
    certainty=Certainty.LIKELY,
    location=Location(WORKER, 30, 18, 30, 43),
    symbol="vllm.model_executor.models.llama.LlamaModel.get_input_embeddings",
    message="LlamaModel has no attribute 'get_input_embeddings'",
    raises="AttributeError",
    drift=False,
    evidence=Evidence(path="vllm/model_executor/models/llama.py", line=340),
    fingerprint="77b2",
)

REPORT = Report(
    client=ClientSummary("speculators", "0.3.0", "release on the index", files=94, files_using_target=2),
    target=TargetSummary("vllm", "0.16.0", "release on the index"),
    baseline=TargetSummary("vllm", "0.11.0", "release on the index", chosen="required by the client's extra datagen"),
    usages=UsageCounts(imports=Count(14), calls=Count(21, 2), attributes=Count(1063, 1)),
    findings=(UNKNOWN_ARGUMENT, MISSING_ARGUMENT, UNRESOLVED_ATTRIBUTE),
    unresolved=(
        Unresolved(PATH, 150, "the receiver has no known type", "call"),
        Unresolved(PATH, 150, "the receiver has no known type", "call"),
        Unresolved(WORKER, 9, "the name is bound at run time", "attribute"),
    ),
    sources=SOURCES,
    reasons=(("scheduler-block-size", "The scheduler needs the block size since 0.11.1. The platform may change it."),),
)

CLEAN = replace(REPORT, findings=(), unresolved=(), usages=UsageCounts(imports=Count(3)))

SKIPPING = replace(
    CLEAN,
    client=replace(REPORT.client, skipped=(Skipped("speculators/bad.py", "line 3: invalid syntax"),)),
    notices=("vllm could not be imported: judged from its sources alone",),
)

HOSTILE_TEXT = "\x1b[31mred\x1b[0m [bold]x[/bold] :smile: \x07\x9b2J \u202eltr\u202c\u2028 \udcff \x7f\r\n\tend"


def with_text(text: str) -> Report:
    """A report whose every text that comes from a client or target is the given one."""
    finding = Finding(
        kind=Kind.MISSING_ARGUMENT,
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        location=Location(text, 1, 3, 1, 9),
        symbol=text,
        message=text,
        parameter=text,
        raises=f"TypeError: {text}!",
        drift=False,
        evidence=Evidence(path=text, line=1, signature=f"(a={text})", baseline_signature=f"(b={text})"),
        rule=text,
        fix=Fix("manual", text),
        scope=text,
        snippet=text,
        fingerprint=text,
    )
    return Report(
        client=ClientSummary(text, text, text, files=1, files_using_target=1, skipped=(Skipped(text, text),)),
        target=TargetSummary(text, text, text, chosen=text),
        baseline=TargetSummary(text, text, text, chosen=text),
        usages=UsageCounts(),
        findings=(finding, replace(finding, location=Location(text, 2), evidence=Evidence(signature=text))),
        unresolved=(Unresolved(text, 1, text, text),),
        notices=(text,),
        sources=((text, 1, text),),
    )
