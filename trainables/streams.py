"""Independent random streams, each named by what may influence it.

The loss is never part of a key: every loss must meet the same split, wrong labels, initial weights and batches.
"""

import hashlib

import numpy
import torch

from trainables.choices import canonical_json


def stream_seed(*key: str | int) -> int:
    """A 64-bit seed from a key, the same on every platform and in every process."""
    return int.from_bytes(hashlib.sha256(canonical_json(key).encode()).digest()[:8], "little")


def numpy_stream(*key: str | int) -> numpy.random.Generator:
    return numpy.random.Generator(numpy.random.Philox(stream_seed(*key)))


def torch_stream(*key: str | int) -> torch.Generator:
    return torch.Generator().manual_seed(stream_seed(*key))
