"""Networks, initialised from a stream of their own rather than from torch's global one."""

from collections.abc import Callable
from typing import Annotated

import torch
from annotated_types import Ge
from torch import nn

from trainables.choices import Choice, Menu


def small_cnn(
    image_shape: tuple[int, int, int],
    num_classes: int,
    *,
    width: Annotated[int, Ge(1)] = 16,
    hidden: Annotated[int, Ge(1)] = 256,
) -> nn.Module:
    """Two 3x3 convolutions with batch norm, a pool between them, one hidden layer: for images of 8x8 pixels and more."""
    channels, height, image_width = image_shape
    return nn.Sequential(
        nn.Conv2d(channels, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * width * (height // 2) * (image_width // 2), hidden),
        nn.ReLU(),
        nn.Linear(hidden, num_classes),
    )


def build_model(choice: Choice, image_shape: tuple[int, int, int], num_classes: int, random: torch.Generator) -> nn.Module:
    model = MODELS.build(choice, image_shape, num_classes)
    initialise(model, random)
    return model


def initialise(model: nn.Module, random: torch.Generator) -> None:
    """Kaiming-uniform convolutions and Xavier-uniform linear layers, as in the papers' reference code; biases 0."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_uniform_(module.weight, nonlinearity="relu", generator=random)
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=random)
        if isinstance(module, (nn.Conv2d, nn.Linear)) and module.bias is not None:
            nn.init.zeros_(module.bias)


_MODELS: dict[str, Callable[..., nn.Module]] = {"small_cnn": small_cnn}
MODELS = Menu("model", _MODELS)
