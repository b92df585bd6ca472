# mypy: disable-error-code="import-not-found"
"""Shards on the machines of a Ray cluster, which says where there is room, and runs those that failed again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from driftcheck.errors import DriftcheckError

_RETRIES = 2


def run_shards(work: Callable[[int], int], shards: int, *, gpus: int) -> Iterator[tuple[int, int | str]]:
    """Runs `work` with the number of each shard, each in a process of its own, as many at a time as there is room for.

    Gives the numbers as they end, with what `work` gives, or why it failed for the last time. In a cluster that has
    GPUs each shard gets so many, all on one machine. The cluster is the one that RAY_ADDRESS names, or that this
    machine is part of; where there is none, Ray runs on this machine alone.
    """
    try:
        import ray
    except ImportError:
        raise DriftcheckError("--ray needs Ray: pip install 'driftcheck[ray]'") from None

    def run(shard: int) -> int:
        return work(shard)

    try:
        ray.init(log_to_driver=False, include_dashboard=False, logging_level="error")
    except Exception as error:  # what it raises is a matter of what is in the way
        raise DriftcheckError(
            f"Ray does not start: {str(error).strip().splitlines()[0]}; its logs say more, or those of the cluster that"
            " RAY_ADDRESS names"
        ) from error
    try:
        needed = gpus if ray.cluster_resources().get("GPU", 0) else 0
        # A process runs one shard and ends, so that nothing of an engine, a GPU's memory above all, outlives it.
        task = ray.remote(num_gpus=needed, max_calls=1, max_retries=_RETRIES, retry_exceptions=True)(run)
        running = {task.remote(shard): shard for shard in range(shards)}
        while running:
            (ended, *_), _ = ray.wait(list(running))
            shard = running.pop(ended)
            try:
                yield shard, ray.get(ended)
            except Exception as error:  # noqa: BLE001 (whatever it is, other shards go on)
                yield shard, str(error).strip().splitlines()[-1]
    finally:
        ray.shutdown()
