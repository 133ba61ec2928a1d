"""Figures as vega-lite charts, pure functions of data frames. A loss has one colour in all, by its place in the study."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import altair
import pandas

from analysis.tables import SETTING, row_label

# Okabe & Ito, yellow left out (too pale for a line on white), then Tol's muted scheme for studies of many losses.
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    *("#882255", "#44AA99", "#332288", "#999933", "#AA4499", "#661100", "#888888"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")
DASHES = ([1, 0], [7, 3], [2, 2], [8, 3, 2, 3], [4, 2], [12, 3], [2, 4], [8, 2, 2, 2, 2, 2])
INK, QUIET, GOOD = "#1c2430", "#5d6878", "#009E73"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
PERCENT = altair.Scale(domain=[-3, 103], nice=False, zero=False)
TICKS = [0, 20, 40, 60, 80, 100]
MOST_LABELS = 16  # losses that can all be named beside their points; more get a legend, and names where there is room
MOST_EPOCHS = 60  # points of a curve; more are not seen, and hundreds of cells must fit in one page


@dataclass(frozen=True)
class Look:
    colour: str
    shape: str
    dash: list[int]


def looks(losses: Mapping[str, str]) -> dict[str, Look]:
    """How each label is drawn, given the loss of each in the study's order: colour by loss, and readable without colour."""
    order = list(dict.fromkeys(losses.values()))
    variants: dict[str, int] = {}
    found = {}
    for label, loss in losses.items():
        place = order.index(loss)
        # A loss alone has its own shape; where another axis varies too, shapes tell that axis apart.
        variant = place if label == loss else variants.get(loss, 0)
        variants[loss] = variants.get(loss, 0) + 1
        found[label] = Look(PALETTE[place % len(PALETTE)], SHAPES[variant % len(SHAPES)], DASHES[variant % len(DASHES)])
    return found


def losses_by_label(cells: pandas.DataFrame) -> dict[str, str]:
    """The rows of a study in order, each with its loss."""
    return dict(zip(row_label(cells), cells["loss"].astype(str), strict=True))


def robustness(cells: pandas.DataFrame) -> Any | None:
    """Clean fit against corrupted fit, a panel a noisy setting: low on the left underfits, high on the right overfits."""
    drawn = cells.assign(label=row_label(cells), x=cells["train_clean_accuracy_mean"], y=cells["train_corrupted_fit_mean"])
    drawn = drawn.dropna(subset=["x", "y"])
    if drawn.empty:
        return None
    look = looks(losses_by_label(cells))
    panels = [_robustness_panel(group, setting, look) for setting, group in drawn.groupby([*SETTING], sort=False)]
    return _figure(panels, "Fit of right labels against fit of wrong labels, by loss", columns=2, narrowest=290, widest=440)


def _robustness_panel(cells: pandas.DataFrame, setting: Any, look: Mapping[str, Look]) -> Any:
    x = altair.X("x:Q", scale=PERCENT, axis=altair.Axis(values=TICKS), title="Clean fit, % of right labels (low: underfits)")
    y = altair.Y(
        "y:Q", scale=PERCENT, axis=altair.Axis(values=TICKS), title="Corrupted fit, % of wrong labels (high: overfits)"
    )
    means = cells[["label", "x", "y"]]
    pairs = cells[["label", "train_clean_accuracy_values", "train_corrupted_fit_values"]].itertuples(index=False, name=None)
    each = [{"label": label, "x": a, "y": b} for label, clean, wrong in pairs for a, b in zip(clean, wrong, strict=True)]
    crowded = len(look) > MOST_LABELS
    labels = _chart(_placed_labels(means, only_where_free=crowded))
    legend = _legend(symbolSize=70, symbolStrokeWidth=0) if crowded else None
    colour = altair.Color("label:N", scale=_scale(look, "colour"), legend=legend)
    shape = altair.Shape("label:N", scale=_scale(look, "shape"), legend=legend)
    tooltip = [altair.Tooltip("label:N", title="loss"), _percent("x", "clean fit (%)"), _percent("y", "corrupted fit (%)")]
    corner = _chart(pandas.DataFrame([{"x": 80, "x2": 103, "y": -3, "y2": 20, "mid": 8.5, "text": "good corner"}]))
    layers = [
        corner.mark_rect(color=GOOD, opacity=0.08).encode(x=x, x2="x2:Q", y=y, y2="y2:Q"),
        # Outside the frame, where no point can lie.
        corner.mark_text(color=GOOD, fontSize=10.5, fontStyle="italic", angle=90, dy=-9).encode(
            x="x2:Q", y="mid:Q", text="text:N"
        ),
        labels.mark_rule(color="#b4bcc8", strokeWidth=0.8).encode(x=x, y=y, x2="near_x:Q", y2="near_y:Q"),
        _chart(pandas.DataFrame(each).dropna()).mark_circle(size=14, opacity=0.45).encode(x=x, y=y, color=colour),
        _chart(means).mark_point(size=75, filled=True, opacity=1).encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip),
        labels.mark_text(fontSize=11, align="center", baseline="middle", color=INK).encode(
            x="text_x:Q", y="text_y:Q", text="label:N"
        ),
    ]
    return altair.layer(*layers).properties(width=440, height=300, title=_title(setting))


def _placed_labels(
    points: pandas.DataFrame, only_where_free: bool, width: float = 300, height: float = 300
) -> pandas.DataFrame:
    """Where each point's label fits without covering a point or another label: the nearest free of a ring of places.

    Worked out for the narrowest panel, in the scale's units, so that it holds in any wider one. A leader goes to a far label.
    """
    unit_x, unit_y = 106 / width, 106 / height
    taken = [
        (x - 6 * unit_x, x + 6 * unit_x, y - 6 * unit_y, y + 6 * unit_y) for x, y in zip(points["x"], points["y"], strict=True)
    ]
    places = []
    for label, x, y in points.sort_values("y")[["label", "x", "y"]].itertuples(index=False, name=None):
        half = (3.1 * len(label) + 2) * unit_x, 7 * unit_y
        boxes = []
        for rank, (distance, (right, up)) in enumerate(product((0, 10, 22, 36, 52, 70, 90), DIRECTIONS)):
            centre_x = x + right * (half[0] + (8 + distance) * unit_x)
            centre_y = y + up * (half[1] + (5 + distance) * unit_y)
            box = centre_x - half[0], centre_x + half[0], centre_y - half[1], centre_y + half[1]
            outside = box[0] < -3 or box[1] > 103 or box[2] < -3 or box[3] > 103
            boxes.append((outside * 1000 + sum(_overlap(box, other) for other in taken), rank, distance, box, right, up))
        covered, _, distance, box, right, up = min(boxes)
        if covered and only_where_free:
            continue
        taken.append(box)
        text_x, text_y = (box[0] + box[1]) / 2, (box[2] + box[3]) / 2
        near = (text_x - right * half[0], text_y - up * half[1]) if distance else (x, y)
        places.append((label, x, y, text_x, text_y, *near))
    return pandas.DataFrame(places, columns=["label", "x", "y", "text_x", "text_y", "near_x", "near_y"])


DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 1), (-0.7, 1), (0.7, -1), (-0.7, -1))


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    wide, high = min(box[1], other[1]) - max(box[0], other[0]), min(box[3], other[3]) - max(box[2], other[2])
    return wide * high if wide > 0 and high > 0 else 0.0


def learning_curves(history: pandas.DataFrame, losses: Mapping[str, str] | None = None) -> Any | None:
    """Test accuracy by epoch, and under it the fit of wrong labels where there are any: mean and range of the seeds.

    `history` has dataset, noise, label, loss, metric, epoch and value; `losses` gives the study's order of labels.
    """
    curves = by_epoch(history)
    if curves.empty:
        return None
    look = looks(losses or dict(zip(history["label"], history["loss"], strict=True)))
    columns = []
    for setting, group in curves.groupby([*SETTING], sort=False):
        rows = [
            _curves_panel(part, title, look)
            for metric, title in CURVES.items()
            if len(part := group[group["metric"] == metric])
        ]
        columns.append(altair.vconcat(*rows, spacing=14, title=_title(setting)))
    return _figure(columns, "Test accuracy and fit of wrong labels by epoch", columns=4, narrowest=190, widest=440)


CURVES = {"test_accuracy": "Test accuracy, %", "train_corrupted_fit": "Corrupted fit, %"}


def by_epoch(history: pandas.DataFrame) -> pandas.DataFrame:
    """Mean, lowest and highest of the seeds at each epoch of each curve, at MOST_EPOCHS epochs or fewer, the last included."""
    epochs = sorted(history["epoch"].unique())
    step = max(1, -(-len(epochs) // MOST_EPOCHS))
    kept = history[history["epoch"].isin(epochs[::-1][::step])]
    grouped = kept.groupby([*SETTING, "label", "metric", "epoch"], sort=False)["value"]
    return grouped.agg(mean="mean", low="min", high="max").round(2).reset_index()


def _epoch_ticks(curves: pandas.DataFrame) -> list[int]:
    """At most six whole epochs: left to itself, the axis of two epochs has a tick at 1.5."""
    last = int(curves["epoch"].max())
    step = next(step for size in itertools.count() for step in (10**size, 2 * 10**size, 5 * 10**size) if last <= 5 * step)
    return [*range(step, last + 1, step)] if step > 1 else list(range(1, last + 1))


def _curves_panel(curves: pandas.DataFrame, title: str, look: Mapping[str, Look]) -> Any:
    x = altair.X(
        "epoch:Q", title="Epoch", axis=altair.Axis(values=_epoch_ticks(curves), format="d"), scale=altair.Scale(zero=False)
    )
    y = {"title": title, "scale": altair.Scale(domain=[0, 100]), "axis": altair.Axis(values=TICKS, labelOverlap=False)}
    base = _chart(curves).encode(
        x=x, color=altair.Color("label:N", scale=_scale(look, "colour"), legend=_legend(symbolType="stroke"))
    )
    dash = altair.StrokeDash("label:N", scale=_scale(look, "dash"), legend=_legend(symbolType="stroke"))
    tooltip = [altair.Tooltip("label:N", title="loss"), "epoch:Q", _percent("mean", title)]
    band = base.mark_area(opacity=0.14).encode(y=altair.Y("low:Q", **y), y2="high:Q")
    line = base.mark_line(strokeWidth=1.7, clip=True).encode(y=altair.Y("mean:Q", **y), strokeDash=dash, tooltip=tooltip)
    return altair.layer(band, line).properties(width=205, height=170)


def weight_functions(weights: pandas.DataFrame, margins: pandas.DataFrame, losses: Iterable[str] = ()) -> Any | None:
    """Each loss's weight by margin, as a share of its maximum, over the margins before the first step; a panel a data set.

    `weights` has dataset, loss, margin, weight; `margins` has dataset, num_classes, low, high and height (1 at the mode).
    """
    if weights.empty:
        return None
    look = looks({loss: loss for loss in losses or weights["loss"]})
    span = [weights["margin"].min(), weights["margin"].max()]
    panels = []
    for dataset, group in weights.groupby("dataset", sort=False):
        here = margins[margins["dataset"] == dataset]
        classes = f" · {here['num_classes'].iloc[0]} classes" if len(here) else ""
        panels.append(_weights_panel(group, here, span, look).properties(title=f"{dataset}{classes}"))
    return _figure(panels, "Weight functions over the initial margins", columns=2, narrowest=290, widest=440)


def _weights_panel(weights: pandas.DataFrame, margins: pandas.DataFrame, span: list[float], look: Mapping[str, Look]) -> Any:
    x = {
        "title": "Soft margin of the observed label",
        "scale": altair.Scale(domain=span, nice=False),
        "axis": altair.Axis(tickCount=8),
    }
    y = {
        "title": "Weight, share of its maximum",
        "scale": altair.Scale(domain=[0, 1.15], nice=False),
        "axis": altair.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
    }
    colour = altair.Color("loss:N", scale=_scale(look, "colour"), legend=_legend(symbolType="stroke"))
    dash = altair.StrokeDash("loss:N", scale=_scale(look, "dash"), legend=_legend(symbolType="stroke"))
    bars = _chart(margins).mark_rect(color="#d9dee6", clip=True)
    mode = margins[margins["height"] == margins["height"].max()].head(1).assign(text="margins before training")
    words = _chart(mode).mark_text(color=QUIET, fontSize=10.5, dy=-10, fontStyle="italic")
    lines = _chart(weights).mark_line(strokeWidth=1.9, clip=True)
    tooltip = [altair.Tooltip("loss:N"), altair.Tooltip("margin:Q", format=".2f"), altair.Tooltip("weight:Q", format=".3f")]
    return altair.layer(
        bars.encode(x=altair.X("low:Q", **x), x2="high:Q", y=altair.Y("height:Q", **y), y2=altair.datum(0)),
        words.encode(x="low:Q", y="height:Q", text="text:N"),
        lines.encode(x=altair.X("margin:Q", **x), y=altair.Y("weight:Q", **y), color=colour, strokeDash=dash, tooltip=tooltip),
    ).properties(width=440, height=250)


def _figure(panels: list[Any], description: str, columns: int, narrowest: int, widest: int) -> Any:
    """Panels side by side. `usermeta` tells the page how far it may squeeze them, so that a phone gets one under another."""
    sizes = {"panels": len(panels), "columns": columns, "narrowest": narrowest, "widest": widest}
    chart = altair.concat(*panels, columns=columns, spacing=26, description=description, usermeta=sizes)
    return (
        chart.configure(font=FONT, background="transparent")
        .configure_view(stroke=None)
        .configure_axis(
            **{
                "gridColor": "#e8ecf1",
                "domainColor": "#b4bcc8",
                "tickColor": "#b4bcc8",
                "labelColor": QUIET,
                "titleColor": INK,
            },
            **{"titleFontWeight": "normal", "titleFontSize": 11.5, "labelFontSize": 10.5, "titlePadding": 8},
        )
        .configure_title(anchor="start", fontSize=13, fontWeight=600, color=INK, offset=10)
        .configure_legend(
            orient="top", title=None, labelFontSize=12, labelColor=INK, symbolStrokeWidth=2.2, symbolSize=260, columns=6
        )
    )


def _legend(**options: Any) -> Any:
    return altair.Legend(title=None, symbolOpacity=1, symbolLimit=1000, labelLimit=240, **options)


def _scale(look: Mapping[str, Look], part: str) -> Any:
    return altair.Scale(domain=list(look), range=[getattr(one, part) for one in look.values()])


def _percent(field: str, title: str) -> Any:
    return altair.Tooltip(f"{field}:Q", title=title, format=".2f")


def _title(setting: Iterable[object]) -> str:
    return " · ".join(map(str, setting))


def _chart(frame: pandas.DataFrame) -> Any:
    return altair.Chart(frame)


def specification(chart: Any) -> dict[str, Any]:
    """The chart as vega-lite JSON, with all its rows: altair by itself refuses more than 5,000."""
    with altair.data_transformers.enable("default", max_rows=None):
        return chart.to_dict()
