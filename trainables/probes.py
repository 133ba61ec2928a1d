"""What is measured of a training: how hard samples pulled while it ran, and what the network has learnt since."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainables.margins import soft_margin

MARGIN_BINS, MARGIN_LIMIT = 240, 30.0  # fixed, so that runs compare


class WeightProbe:
    """Running sums of sample weights over all steps so far, kept on the device: a step never waits for them.

    The weight of a sample is half the L1 norm of its logit gradient, for any loss, as published (not divided by its maximum).
    """

    def __init__(self, device: torch.device):
        # Rows: weight, samples. Columns: clean, corrupted. All times the learning rate.
        self.sums = torch.zeros(2, 2, dtype=torch.float64, device=device)
        self.samples = 0

    def observe(self, weight: Tensor, corrupted: Tensor, lr: float) -> None:
        groups = torch.stack([~corrupted, corrupted], dim=1).double()
        self.sums += lr * torch.stack([weight.double() @ groups, groups.sum(0)])
        self.samples += len(weight)

    def metrics(self) -> dict[str, float]:
        """alpha is the lr-weighted mean weight; alpha_table2 the mean effective step that Ou & Zhang's Table 2 prints (T13)."""
        (clean_weight, corrupted_weight), (clean, corrupted) = self.sums.tolist()
        found = {
            "alpha": _ratio(clean_weight + corrupted_weight, clean + corrupted),
            "alpha_table2": _ratio(clean_weight + corrupted_weight, self.samples),
            "weight_clean": _ratio(clean_weight, clean),
            "weight_corrupted": _ratio(corrupted_weight, corrupted),
        }
        found["weight_snr"] = _ratio(found["weight_clean"], found["weight_corrupted"])
        return {name: value for name, value in found.items() if value is not None}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums, "samples": self.samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums.copy_(state["sums"])
        self.samples = state["samples"]


def _ratio(numerator: float | None, denominator: float | None) -> float | None:
    """None where there is nothing to divide by: no corrupted sample, no learning rate."""
    return None if numerator is None or not denominator else numerator / denominator


@dataclass(frozen=True)
class Predictions:
    """A network's view of some images: the predicted class, and the soft margin of the label it is held against."""

    predicted: Tensor
    margin: Tensor


@torch.inference_mode()
def predict(model: Callable[[Tensor], Tensor], batches: list[tuple[Tensor, Tensor]]) -> Predictions:
    parts = [(logits.argmax(1), soft_margin(logits, labels)) for logits, labels in ((model(x), y) for x, y in batches)]
    predicted, margin = zip(*parts, strict=True)
    return Predictions(torch.cat(predicted), torch.cat(margin).double())


def accuracy(predicted: Tensor, labels: Tensor) -> float | None:
    """Percent of agreement; ties went to the lowest class. None of nothing."""
    return 100 * (predicted == labels).double().mean().item() if len(labels) else None


def mae(margin: Tensor) -> float:
    """Mean L1 distance between one-hot label and prediction, 2 (1 - p)."""
    return 2 * torch.sigmoid(-margin).mean().item()


def corruption_auc(margin: Tensor, corrupted: Tensor) -> float | None:
    """ROC AUC of the margin as a score for «this label is right» (Mann-Whitney, ties count one half)."""
    wrong, right = margin[corrupted], margin[~corrupted]
    if not len(wrong) or not len(right):
        return None
    ordered = wrong.sort().values
    below = torch.searchsorted(ordered, right, side="left") + torch.searchsorted(ordered, right, side="right")
    return below.double().mean().item() / (2 * len(wrong))


def margin_histogram(margin: Tensor) -> dict[str, Any]:
    """Counts between fixed edges; what lies beyond the outermost counts in the outermost bin."""
    inside = margin.clamp(-MARGIN_LIMIT, MARGIN_LIMIT).cpu()
    counts = torch.histc(inside, MARGIN_BINS, -MARGIN_LIMIT, MARGIN_LIMIT).long().tolist()
    return {"edges": torch.linspace(-MARGIN_LIMIT, MARGIN_LIMIT, MARGIN_BINS + 1).tolist(), "counts": counts}
