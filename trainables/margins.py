"""The soft margin, on which every loss of the curriculum view depends, and what to expect of it before training."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def soft_margin(logits: Tensor, labels: Tensor) -> Tensor:
    """Delta_y = s_y - logsumexp of the other scores, so that p_y = sigmoid(Delta_y) (Ou & Zhang, Eq. 1)."""
    return margin_and_rivals(logits, labels)[0]


def margin_and_rivals(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The margin, and the softmax over the other classes, which is minus its gradient there (0 at the label itself).

    The label's score is masked rather than subtracted: exact however confident the network is.
    """
    index = labels.unsqueeze(1)
    rivals = logits.scatter(1, index, -math.inf)
    strongest = rivals.amax(dim=1, keepdim=True)
    shares = torch.exp(rivals - strongest)
    total = shares.sum(dim=1, keepdim=True)
    # The difference of two large scores first: adding the logarithm to either would round it away.
    margin = (logits.gather(1, index) - strongest) - torch.log(total)
    return margin.squeeze(1), shares / total


def paper_k(num_classes: int) -> float:
    """Eq. 4 of Ou & Zhang with k for k-1: gives the 5.097 and 2.717 they quote, with which their tau was tuned (T12)."""
    return math.log(num_classes) + 0.5 - (math.e - 1) / (2 * num_classes)


def eq4(num_classes: int) -> float:
    """Eq. 4 of Ou & Zhang as printed, for unit-variance scores."""
    return math.log(num_classes - 1) + 0.5 - (math.e - 1) / (2 * (num_classes - 1))


def expected_margin(num_classes: int, how: str | float = "paper_k") -> float:
    """|E[Delta_y]| at initialisation, by name or as a number of one's own."""
    found = EXPECTED_MARGINS[how](num_classes) if isinstance(how, str) else how
    if found <= 0:
        raise ValueError(f"expected_margin {how} is {found:.3f} for {num_classes} classes; give a positive number instead")
    return found


EXPECTED_MARGINS: dict[str, Callable[[int], float]] = {"paper_k": paper_k, "eq4": eq4}
