"""The ranges in which a parameter is worth searching; the range in which it is allowed stands with the parameter itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Space:
    low: float
    high: float
    log: bool = False
    source: str = ""


SPACES: dict[str, Space] = {
    "loss.imae.T": Space(0.0, 16.0, source="Wang et al. 2019, Fig. 6-8"),
    "loss.gce.q": Space(0.1, 1.0, source="Zhang & Sabuncu 2018"),
    "loss.scale.tau": Space(0.5, 5.0, source="Ou & Zhang, Table 9, widened"),
    "loss.shift.tau": Space(0.5, 5.0, source="Ou & Zhang, Table 9, widened"),
    "optimizer.sgd.lr": Space(1e-3, 0.5, log=True),
    "optimizer.sgd.weight_decay": Space(1e-5, 1e-2, log=True),
}
