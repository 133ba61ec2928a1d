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
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)  # lr * (weight, corrupted weight, corrupted samples)
        self.rate_samples = 0.0  # sum of lr * samples
        self.samples = 0

    def observe(self, weight: Tensor, corrupted: Tensor, lr: float) -> None:
        mask = corrupted.to(weight.dtype)
        self.sums += lr * torch.stack([weight.sum(), weight @ mask, mask.sum()])
        self.rate_samples += lr * len(weight)
        self.samples += len(weight)

    def metrics(self) -> dict[str, float]:
        """alpha is the lr-weighted mean weight; alpha_table2 the mean effective step that Ou & Zhang's Table 2 prints (T13)."""
        weight, corrupted_weight, corrupted = self.sums.tolist()
        clean = self.rate_samples - corrupted
        found = {
            "alpha": _ratio(weight, self.rate_samples),
            "alpha_table2": _ratio(weight, self.samples),
            "weight_clean": _ratio(weight - corrupted_weight, clean),
            "weight_corrupted": _ratio(corrupted_weight, corrupted),
        }
        found["weight_snr"] = _ratio(found["weight_clean"], found["weight_corrupted"])
        return {name: value for name, value in found.items() if value is not None}

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums, "rate_samples": self.rate_samples, "samples": self.samples}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums.copy_(state["sums"])
        self.rate_samples, self.samples = state["rate_samples"], state["samples"]


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
