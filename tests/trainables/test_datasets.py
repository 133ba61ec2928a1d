from collections import Counter
from dataclasses import fields

import numpy
import pytest
from sklearn.datasets import load_digits

from trainables.choices import BadChoice
from trainables.datasets import DATASETS, load_dataset

SHAPES = {  # training size, test size, shape of an image, classes
    "digits": (1297, 500, (1, 8, 8), 10),
    "digit_pairs": (4000, 2000, (1, 8, 16), 100),
}
EVERY_DATASET = pytest.mark.parametrize("name", DATASETS.entries)


@EVERY_DATASET
def test_shapes_and_types_are_as_promised(name):
    assert name in SHAPES, f"dataset {name} is listed, but has no entry in SHAPES of {__file__}"
    data = load_dataset(name)
    train, test, shape, classes = SHAPES[name]
    assert data.train_images.shape == (train, *shape)
    assert data.test_images.shape == (test, *shape)
    assert data.train_labels.shape == (train,)
    assert data.test_labels.shape == (test,)
    assert data.image_shape == shape
    assert data.num_classes == classes
    assert data.train_images.dtype == data.test_images.dtype == numpy.uint8
    assert data.train_labels.dtype == data.test_labels.dtype == numpy.int64


@EVERY_DATASET
def test_every_class_and_no_other_is_in_training_and_test(name):
    data = load_dataset(name)
    for labels in (data.train_labels, data.test_labels):
        assert set(labels.tolist()) == set(range(data.num_classes))


@EVERY_DATASET
def test_mean_and_std_are_those_of_each_channel_of_the_training_images(name):
    data = load_dataset(name)
    for channel, (mean, std) in enumerate(zip(data.mean, data.std, strict=True)):
        pixels = data.train_images[:, channel].astype(float)
        assert mean == pytest.approx(pixels.sum() / pixels.size, rel=1e-12)
        assert std == pytest.approx((((pixels - mean) ** 2).sum() / pixels.size) ** 0.5, rel=1e-12)
    assert len(data.mean) == data.image_shape[0]


@EVERY_DATASET
def test_loading_twice_gives_the_same_whatever_the_global_generator(name):
    numpy.random.seed(1)
    one = load_dataset(name)
    numpy.random.seed(2)
    other = load_dataset({"name": name})
    for field in fields(one):
        assert numpy.array_equal(getattr(one, field.name), getattr(other, field.name)), field.name


@EVERY_DATASET
def test_training_and_test_share_no_image(name):
    data = load_dataset(name)
    assert not {image.tobytes() for image in data.train_images} & {image.tobytes() for image in data.test_images}


def test_digits_uses_each_bundled_image_exactly_once_with_its_label(digits):
    bundled = load_digits()
    used = Counter(
        (image.tobytes(), label)
        for images, labels in ((digits.train_images, digits.train_labels), (digits.test_images, digits.test_labels))
        for image, label in zip(images, labels.tolist(), strict=True)
    )
    pairs = zip(bundled.images, bundled.target.tolist(), strict=True)
    assert used == Counter((image.astype(numpy.uint8).tobytes(), label) for image, label in pairs)
    assert len(used) == 1797  # no two have the same pixels, so pixels tell where an image came from
    assert numpy.array_equal(bundled.images, bundled.images.astype(numpy.uint8))


@pytest.mark.parametrize("part", ["train", "test"])
def test_both_halves_of_a_digit_pair_are_digits_of_their_class_from_the_same_part(digits, part):
    pairs = load_dataset("digit_pairs")
    label_of = {
        image.tobytes(): label
        for image, label in zip(getattr(digits, f"{part}_images"), getattr(digits, f"{part}_labels").tolist(), strict=True)
    }
    images, labels = getattr(pairs, f"{part}_images"), getattr(pairs, f"{part}_labels").tolist()
    for image, label in zip(images, labels, strict=True):
        left, right = (numpy.ascontiguousarray(half).tobytes() for half in (image[:, :, :8], image[:, :, 8:]))
        assert (label_of[left], label_of[right]) == divmod(label, 10)


def test_digit_pairs_make_use_of_most_digits_on_either_side(digits):
    pairs = load_dataset({"name": "digit_pairs", "train": 5000})
    for half in (pairs.train_images[..., :8], pairs.train_images[..., 8:]):
        # 5000 draws miss one digit of 1297 with probability exp(-3.9).
        assert len({image.tobytes() for image in half}) > 0.95 * len(digits.train_images)


@pytest.mark.parametrize(("train", "test"), [(100, 100), (150, 333)])
def test_digit_pairs_come_in_the_sizes_asked_for_with_every_class(train, test):
    data = load_dataset({"name": "digit_pairs", "train": train, "test": test})
    assert (len(data.train_images), len(data.test_images)) == (train, test)
    assert set(data.train_labels.tolist()) == set(data.test_labels.tolist()) == set(range(100))


def test_fewer_digit_pairs_than_classes_are_refused():
    with pytest.raises(BadChoice, match=r"^dataset digit_pairs takes test a whole number >= 100, but got 99$"):
        load_dataset({"name": "digit_pairs", "test": 99})
