# mypy: disable-error-code="import-not-found"
"""Contracts that show with a model only: the executor, its worker and what stands in a batch."""

from __future__ import annotations

import functools
import inspect
from itertools import accumulate
from typing import Any

from making import configuration, finish, outcome, prompt, report, request, scheduler
from vllm.v1.core.kv_cache_utils import get_kv_cache_configs
from vllm.v1.executor.multiproc_executor import MultiprocExecutor

_PROMPTS = {"a": prompt(30, 10), "b": prompt(80, 110), "c": prompt(20, 310)}


class Extension:
    """What is mixed into the worker: it keeps the tokens of each step, as a client would keep hidden states."""

    model_runner: Any

    def watch(self) -> None:
        """Keeps from now on what the embedding gets, which is the flat batch."""
        self.captured: list[list[int]] = []
        embedding = self.model_runner.model.model.embed_tokens
        embedding.register_forward_hook(lambda _, given, __: self.captured.append(given[0].tolist()))

    def rows(self) -> list[list[int]]:
        """The tokens of each step so far, flat."""
        return self.captured

    def batch(self) -> list[str]:
        """The requests of the last step in the order in which their rows stand."""
        return list(self.model_runner.input_batch.req_ids)


@functools.cache
def _engine() -> tuple[Any, Any, Any]:
    """The configuration, an executor with its worker in a process of its own, and the cache that both agreed on."""
    config = configuration(prefix_caching=False, batch=64, extension="executing.Extension")
    executor = MultiprocExecutor(vllm_config=config)
    specs = executor.get_kv_cache_specs()
    if hasattr(executor, "set_kv_cache_layout"):
        from vllm.v1.attention.backends.utils import resolve_kv_cache_layout

        layout = resolve_kv_cache_layout(
            config, executor.get_supported_kv_cache_layouts(), [spec for rank in specs for spec in rank.values()]
        )
        executor.set_kv_cache_layout(layout.name)
    caches = get_kv_cache_configs(config, specs, [1 << 24])
    executor.initialize_from_config(caches)
    executor.collective_rpc("watch")
    return config, executor, caches[0]


def _ran(*, sampling: bool) -> list[str]:
    """What two steps return, with the second phase of each or without."""
    config, executor, cache = _engine()
    which = scheduler(config, cache)
    results = []
    for name in (f"first-{sampling}", f"second-{sampling}"):
        which.add_request(request(name, prompt(40)))
        output = executor.execute_model(which.schedule())
        results.append(type(output).__name__)
        if sampling and output is None:
            results.append(type(executor.sample_tokens(None)).__name__)
        finish(which, name)
    return results


def execute_without_sample() -> dict[str, Any]:
    """Broken last: the worker goes on waiting for the second phase."""
    return {"kept": outcome(lambda: _ran(sampling=True)), "broken": outcome(lambda: _ran(sampling=False))}


def _ran_together() -> list[list[tuple[str, int]]]:
    """Runs three prompts in steps of 64 tokens and ends each when all of it is computed; whose rows stood where."""
    config, executor, cache = _engine()
    which = scheduler(config, cache)
    for name, tokens in _PROMPTS.items():
        which.add_request(request(name, tokens))
    steps, left = [], {name: len(tokens) for name, tokens in _PROMPTS.items()}
    while (step := which.schedule()).total_num_scheduled_tokens:
        if executor.execute_model(step) is None:
            executor.sample_tokens(None)
        batch = [(name, step.num_scheduled_tokens[name]) for name in executor.collective_rpc("batch")[0]]
        steps.append(batch)
        for name, count in batch:
            left[name] -= count
        finish(which, *(name for name, _ in batch if not left[name]))
    return steps


def chunked_capture() -> dict[str, Any]:
    """Are the rows that are cut out for a prompt its own?"""
    executor = _engine()[1]
    before = len(executor.collective_rpc("rows")[0])
    steps = _ran_together()
    captured = executor.collective_rpc("rows")[0][before:]
    flat = [token for rows, batch in zip(captured, steps, strict=True) for token in rows[: sum(c for _, c in batch)]]
    ends = list(accumulate(len(tokens) for tokens in _PROMPTS.values()))
    by_submission = {
        name: flat[end - len(tokens) : end] for end, (name, tokens) in zip(ends, _PROMPTS.items(), strict=True)
    }
    by_batch: dict[str, list[int]] = {name: [] for name in _PROMPTS}
    for rows, batch in zip(captured, steps, strict=True):
        start = 0
        for name, count in batch:
            by_batch[name] += rows[start : start + count]
            start += count
    return {
        "steps": steps,
        "broken": {name: by_submission[name] == tokens for name, tokens in _PROMPTS.items()},
        "kept": {name: by_batch[name] == tokens for name, tokens in _PROMPTS.items()},
    }


def single_reply_as_list() -> dict[str, Any]:
    executor = _engine()[1]
    return {
        "parameters": [name for name in inspect.signature(executor.collective_rpc).parameters if "rank" in name],
        "reply": outcome(lambda: executor.collective_rpc("batch", unique_reply_rank=0)),
        "broken": outcome(lambda: executor.collective_rpc("batch", unique_reply_rank=0)[0]),
        "kept": outcome(lambda: executor.collective_rpc("batch")[0]),
    }


if __name__ == "__main__":
    try:
        report(
            {
                "chunked-capture": chunked_capture,
                "single-reply-as-list": single_reply_as_list,
                "execute-without-sample": execute_without_sample,
            }
        )
    finally:
        _engine()[1].shutdown()
