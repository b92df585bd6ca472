# mypy: disable-error-code="import-not-found"
"""Everything of vLLM that extraction touches and vLLM does not promise to keep, one function for each thing.

What else is used is public: `LLM`, `generate`, `collective_rpc`, `SamplingParams` and the engine's arguments. Types
stand here as vLLM has them, so that `driftcheck audit driftcheck` can hold each access against a release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm import LLM
    from vllm.config import VllmConfig
    from vllm.sequence import IntermediateTensors
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.worker.gpu_model_runner import GPUModelRunner
    from vllm.v1.worker.gpu_worker import Worker

_HANDED_ON = "driftcheck_"


def runner_of(worker: Worker) -> GPUModelRunner:
    """What runs the model in a worker."""
    return worker.model_runner


def model_of(worker: Worker) -> Any:
    """The model that a worker has loaded, a `torch.nn.Module`."""
    return worker.model_runner.get_model()


def configuration_of(worker: Worker) -> VllmConfig:
    """The configuration that a worker has been made with."""
    return worker.vllm_config


def text_configuration(configuration: VllmConfig) -> Any:
    """The part of a model's own configuration that describes its language model."""
    return configuration.model_config.hf_text_config


def hidden_size(configuration: VllmConfig) -> int:
    """How many numbers a hidden state has."""
    size: int = configuration.model_config.get_hidden_size()
    return size


def data_type(configuration: VllmConfig) -> Any:
    """The type of the numbers, a `torch.dtype`."""
    return configuration.model_config.dtype


def most_tokens_a_step(configuration: VllmConfig) -> int:
    """How many rows a step can have."""
    tokens: int = configuration.scheduler_config.max_num_batched_tokens
    return tokens


def tensor_rank() -> int:
    """The worker's place among those that hold slices of the same layers."""
    from vllm.distributed import get_tensor_model_parallel_rank

    rank: int = get_tensor_model_parallel_rank()
    return rank


def is_first_stage() -> bool:
    """True for a worker that has a model's first layers."""
    from vllm.distributed import get_pp_group

    is_first: bool = get_pp_group().is_first_rank
    return is_first


def is_last_stage() -> bool:
    """True for a worker that has a model's last layers."""
    from vllm.distributed import get_pp_group

    is_last: bool = get_pp_group().is_last_rank
    return is_last


def is_elsewhere(layer: Any) -> bool:
    """True for what stands where another stage of the pipeline has a layer."""
    from vllm.model_executor.models.utils import PPMissingLayer

    return isinstance(layer, PPMissingLayer)


def hand_on(result: IntermediateTensors, taken: Mapping[int, Any]) -> None:
    """Sends tensors to the next stage, beside those that the model itself sends."""
    for place, states in taken.items():
        result.tensors[f"{_HANDED_ON}{place}"] = states


def taken_over(arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[int, Any]:
    """Takes what the stage before has sent out of the arguments of a step; the model itself knows nothing of it."""
    received = arguments[0] if arguments else options.get("intermediate_tensors")
    return {} if received is None else _taken_off(received)


def _taken_off(received: IntermediateTensors) -> dict[int, Any]:
    tensors = received.tensors
    names = [name for name in tensors if name.startswith(_HANDED_ON)]
    return {int(name.removeprefix(_HANDED_ON)): tensors.pop(name) for name in names}


def wrap_execution(worker: Worker, wrapped: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Puts a function round the one that runs a step; it gets the scheduler's output first."""
    runner = runner_of(worker)
    runner.execute_model = wrapped(runner.execute_model)


def rows_in_step(step: SchedulerOutput) -> int:
    """How many tokens a step computes."""
    rows: int = step.total_num_scheduled_tokens
    return rows


def prompts_begun(step: SchedulerOutput) -> Iterator[tuple[str, list[int] | None]]:
    """The requests that the workers see for the first time, with their prompts."""
    for request in step.scheduled_new_reqs:
        yield request.req_id, request.prompt_token_ids


def computed_before(step: SchedulerOutput) -> dict[str, int]:
    """How many tokens of each request were computed before this step."""
    before = {request.req_id: request.num_computed_tokens for request in step.scheduled_new_reqs}
    continued = step.scheduled_cached_reqs
    before.update(zip(continued.req_ids, continued.num_computed_tokens, strict=True))
    return before


def rows_of_requests(runner: Any, step: SchedulerOutput) -> list[tuple[str, int, int]]:
    """Where the rows of each request stand in what the model has just computed: its id, the first row, how many.

    The batch is in neither the order of the prompts nor that of the scheduler. Asked between `execute_model` and the
    sampling, when both runners still hold the step's batch.
    """
    state = getattr(runner, "execute_model_state", None)
    batch = getattr(state, "input_batch", None)
    if batch is not None:  # the second runner, of 0.22.1 and later
        starts = batch.query_start_loc_np
        return [
            (identity, int(starts[place]), int(starts[place + 1] - starts[place]))
            for place, identity in enumerate(batch.req_ids)
        ]
    rows = []
    start = 0
    for identity in _first_runners_requests(runner):
        count = step.num_scheduled_tokens.get(identity, 0)
        rows.append((identity, start, count))
        start += count
    return rows


def _first_runners_requests(runner: GPUModelRunner) -> list[str]:
    identities: list[str] = runner.input_batch.req_ids
    return identities


def forget_requests(engine: LLM) -> None:
    """Takes back every request that an engine still holds, after a step that failed."""
    held = list(engine.llm_engine.output_processor.request_states)
    engine.llm_engine.abort_request(held, internal=True)
