# mypy: disable-error-code="import-not-found"
"""speculators trains a draft model from what `driftcheck extract` has written of a tiny random model.

Run with `extract`, a folder and a layout where vLLM is; then with `train` and the folder where a speculators is. The
folder of the data set is that of the states too, as speculators has them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from tiny_models import LAYERS, VOCABULARY, prompt

LENGTHS = (40, 17, 64, 33)
STEPS = 6
_LONGEST = 256  # masks are made of blocks of 128
_EXPECTED = "expected.pt"


def samples() -> list[dict[str, Any]]:
    """The rows of the data set, as speculators' own preparation makes them."""
    return [
        {
            "input_ids": prompt(length, length),
            "loss_mask": [place % 3 > 0 for place in range(length)],
            "seq_len": length,
        }
        for length in LENGTHS
    ]


def extract(folder: Path, layout: str) -> dict[str, Any]:
    """Saves a model, a data set, and what transformers says of it; extracts."""
    from datasets import Dataset
    from extraction import made, references

    from driftcheck.cli import main

    model = made("llama", folder / "model")
    data = folder / "data"
    Dataset.from_list(samples()).with_format("torch").save_to_disk(data)
    arguments = ["--output", str(data), "--layers", "0,1,2,3", "--dtype", "float32", "--format", layout, "--no-smoke"]
    code = main(["extract", str(folder / "model"), str(data), *arguments])
    torch.save([references(model, sample["input_ids"]) for sample in samples()], folder / _EXPECTED)
    return {"code": code}


def train(folder: Path) -> dict[str, Any]:
    """How far what the data set class gives is from transformers, and how the loss falls over some steps."""
    try:
        from speculators.train.data import Eagle3SampleFileDataset
    except ImportError:
        data, batch, model, options = _newer(folder)
    else:
        data, batch, model, options = _older(folder, Eagle3SampleFileDataset)
    expected = torch.load(folder / _EXPECTED, weights_only=True)
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        _, loss, _ = model(**batch, **options)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    judged = [_judged(*each) for each in zip(data, samples(), expected, strict=True)]
    return {"samples": judged, "losses": losses, "trained": sum(each.grad is not None for each in model.parameters())}


def _judged(found: dict[str, Any], sample: dict[str, Any], expected: list[Any]) -> dict[str, Any]:
    """A sample is shifted by one token against its states, by the data set class or after it."""
    shift = len(sample["input_ids"]) - len(found["input_ids"])
    states = torch.cat(expected[:-1], dim=-1)
    states = states[:-1] if shift else states
    pairs = ((found["hidden_states"], states), (found["verifier_last_hidden_states"], expected[-1][shift:]))
    return {
        "tokens": found["input_ids"].tolist() == sample["input_ids"][shift:],
        "mask": found["loss_mask"].bool().tolist() == sample["loss_mask"][shift:],
        "errors": [float((ours - theirs).norm() / theirs.norm()) for ours, theirs in pairs],
    }


def _older(folder: Path, dataset: Any) -> tuple[list[Any], dict[str, Any], Any, dict[str, Any]]:
    """speculators 0.3: a file a sample, vocabulary mappings by hand, and verifier states that get no norm."""
    from speculators.config import SpeculatorsConfig, VerifierConfig
    from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
    from speculators.proposals.greedy import GreedyTokenProposalConfig
    from speculators.train.data import create_collate_fn
    from transformers import LlamaConfig

    files = [str(folder / "data" / f"data_{number}.pt") for number in range(len(LENGTHS))]
    data = list(dataset(max_len=_LONGEST, file_list=files))
    shape = LlamaConfig.from_pretrained(folder / "model", num_hidden_layers=1)
    shape._attn_implementation = "simple_flex_attention"
    config = Eagle3SpeculatorConfig(
        transformer_layer_config=shape,
        draft_vocab_size=VOCABULARY,
        speculators_config=SpeculatorsConfig(
            algorithm="eagle3",
            proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=2)],
            default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=str(folder / "model"), architectures=["LlamaForCausalLM"]),
        ),
    )
    all_of_them = torch.ones(VOCABULARY, dtype=torch.bool)
    model = Eagle3DraftModel(config, t2d=all_of_them, d2t=torch.zeros(VOCABULARY, dtype=torch.long))
    return data, create_collate_fn(_LONGEST)(data), model, {"ttt_steps": 2, "use_off_policy_tokens": True}


def _newer(folder: Path) -> tuple[list[Any], dict[str, Any], Any, dict[str, Any]]:
    """speculators 0.9: the data set's folder has the states, and all else is made from training's arguments."""
    from speculators.models.eagle3.core import Eagle3DraftModel
    from speculators.models.eagle3.data import shift_batch
    from speculators.train.data import ArrowDataset, CollateFn
    from transformers import LlamaConfig

    dataset = ArrowDataset(_LONGEST, folder / "data", on_missing="raise", hidden_states_dtype=torch.float32)
    data = [dataset[place] for place in range(len(dataset))]
    shape = LlamaConfig.from_pretrained(folder / "model", num_hidden_layers=1)
    model = Eagle3DraftModel.from_training_args(
        shape,
        verifier_name_or_path=str(folder / "model"),
        target_layer_ids=list(range(LAYERS - 1)),
        draft_vocab_size=VOCABULARY,
        draft_attn_impl="eager",
        norm_before_residual=False,
        ttt_steps=2,
    )
    options, _ = model.get_trainer_kwargs(
        ttt_steps=2, ttt_step_loss_decay=1.0, loss_fn="kl_div", loss_implementation="eager"
    )
    collate = CollateFn(_LONGEST, shape.hidden_size, LAYERS - 1, torch.float32, preprocess=shift_batch)
    batch = collate(data)
    batch.pop("error_records")
    return data, batch, model.float(), options


if __name__ == "__main__":
    action, folder, *more = sys.argv[1:]
    answer = extract(Path(folder), *more) if action == "extract" else train(Path(folder))
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
