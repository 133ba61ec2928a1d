"""Data sets: uint8 images with true labels, in training and test parts that share no image."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy
from annotated_types import Ge
from numpy.typing import NDArray

from trainables.choices import Choice, Menu
from trainables.streams import numpy_stream

Images = NDArray[numpy.uint8]
Labels = NDArray[numpy.int64]


@dataclass(frozen=True)
class Dataset:
    """Images are (N, channels, height, width) and stay uint8: one copy a node serves all its trials."""

    train_images: Images
    train_labels: Labels
    test_images: Images
    test_labels: Labels
    num_classes: int
    mean: tuple[float, ...]  # of each channel, over the training images
    std: tuple[float, ...]

    @property
    def image_shape(self) -> tuple[int, int, int]:
        _, channels, height, width = self.train_images.shape
        return channels, height, width


def digits() -> Dataset:
    """scikit-learn's 1,797 handwritten digits of 8x8 pixels, 10 classes; 500 of them, drawn once for all, are the test set."""
    from sklearn.datasets import load_digits  # takes a second, and only the driver needs it

    bundled = load_digits()
    images = bundled.images.astype(numpy.uint8)[:, None]
    labels = bundled.target.astype(numpy.int64)
    order = numpy_stream("digits", "test split").permutation(len(labels))
    test, train = order[:500], order[500:]
    return _dataset(images[train], labels[train], images[test], labels[test], num_classes=10)


def digit_pairs(*, train: Annotated[int, Ge(100)] = 4000, test: Annotated[int, Ge(100)] = 2000) -> Dataset:
    """Two digits side by side, 8x16 pixels, 100 classes; training and test pairs are made of different digits."""
    single = digits()
    train_images, train_labels = _pairs(single.train_images, single.train_labels, train, "train")
    test_images, test_labels = _pairs(single.test_images, single.test_labels, test, "test")
    return _dataset(train_images, train_labels, test_images, test_labels, num_classes=100)


def _dataset(train_images: Images, train_labels: Labels, test_images: Images, test_labels: Labels, num_classes: int) -> Dataset:
    channels = (0, 2, 3)
    mean, std = train_images.mean(channels), train_images.std(channels)
    return Dataset(train_images, train_labels, test_images, test_labels, num_classes, tuple(mean.tolist()), tuple(std.tolist()))


def _pairs(images: Images, labels: Labels, size: int, part: str) -> tuple[Images, Labels]:
    random = numpy_stream("digit_pairs", part)
    pair_labels = numpy.arange(size) % 100
    halves = [_draw_with_label(images, labels, digit, random) for digit in (pair_labels // 10, pair_labels % 10)]
    return numpy.concatenate(halves, axis=3), pair_labels


def _draw_with_label(images: Images, labels: Labels, wanted: Labels, random: numpy.random.Generator) -> Images:
    by_label = [numpy.flatnonzero(labels == digit) for digit in range(10)]
    return images[[random.choice(by_label[digit]) for digit in wanted]]


def load_dataset(given: Mapping[str, Any] | str | Choice) -> Dataset:
    return DATASETS.build(DATASETS.choose(given))


_DATASETS: dict[str, Callable[..., Dataset]] = {"digits": digits, "digit_pairs": digit_pairs}
DATASETS = Menu("dataset", _DATASETS)
