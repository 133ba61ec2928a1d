"""Label noise as transition matrices: T[i, j] = P(observed = j | true = i)."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy
from annotated_types import Ge, Le
from numpy.typing import NDArray

from trainables.choices import Choice, Menu
from trainables.streams import numpy_stream

Transition = NDArray[numpy.float64]
Labels = NDArray[numpy.int64]
Rate = Annotated[float, Ge(0), Le(1)]


def none(num_classes: int) -> Transition:
    """Every observed label is the true one."""
    return numpy.eye(num_classes)


def symmetric(num_classes: int, *, rate: Rate) -> Transition:
    """Flip with probability `rate`, uniformly over the OTHER classes (Wang; Ou & Zhang)."""
    off_diagonal = rate / (num_classes - 1)
    return numpy.full((num_classes, num_classes), off_diagonal) + numpy.eye(num_classes) * (1 - rate - off_diagonal)


def transition_matrix(given: Mapping[str, Any] | str | Choice, num_classes: int) -> Transition:
    return NOISES.build(NOISES.choose(given), num_classes)


def corrupt(true_labels: Labels, given: Mapping[str, Any] | str | Choice, num_classes: int, seed: int) -> Labels:
    """Observed labels, drawn from the true ones; the noise and the seed alone decide the draw.

    A trial with seed r observes `corrupt(labels, noise, num_classes, seed=r)` of its whole training set in the set's own order.
    """
    choice = NOISES.choose(given)
    true_labels = numpy.asarray(true_labels)
    if len(true_labels) and not (true_labels.min() >= 0 and true_labels.max() < num_classes):
        raise ValueError(f"labels must be in 0..{num_classes - 1}, but are in {true_labels.min()}..{true_labels.max()}")
    transition = transition_matrix(choice, num_classes)
    uniform = numpy_stream("noise", choice.canonical, seed).random(len(true_labels))
    observed = numpy.empty_like(true_labels)
    for label in range(num_classes):
        rows = true_labels == label
        cumulative = transition[label].cumsum()
        observed[rows] = numpy.searchsorted(cumulative / cumulative[-1], uniform[rows], side="right")
    return observed


_NOISES: dict[str, Callable[..., Transition]] = {"none": none, "symmetric": symmetric}
NOISES = Menu("noise", _NOISES)
