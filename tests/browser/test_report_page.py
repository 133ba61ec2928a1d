"""The report as a browser shows it, from disk, on a desk and on a phone."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.tables import METRICS
from tests.browser.conftest import Kept
from tests.browser.machine import chromium

DESK, PHONE = 1200, 390
STROKE = 4  # the box of a path is a little larger than what is drawn
# By figure and kind of mark, for three losses and two seeds: 2 noisy settings of 3 means and 6 seeds; 4 panels of test accuracy
# and 2 of corrupted fit, with 3 losses each; 2 data sets of 3 losses.
MARKS = {
    "robustness": {"symbol": 2 * (3 + 6)},
    "learning_curves": {"line": (4 + 2) * 3, "area": (4 + 2) * 3},
    "weight_functions": {"line": 2 * 3},
}
ALL_DRAWN = "() => [...document.querySelectorAll('.chart')].every(chart => chart.querySelector('svg.marks'))"
LABELS_OF_AXES = """chart => [...chart.querySelectorAll('.role-axis-label')].map(
    axis => [...axis.querySelectorAll('text:not([opacity="0"])')].map(text => text.textContent))"""
# A script can scroll what hides its overflow; a finger cannot.
SCROLL_TO_THE_RIGHT = """frame => { if (getComputedStyle(frame).overflowX === 'auto') frame.scrollLeft = frame.scrollWidth; }"""
TEXTS_OUTSIDE = """svg => { const frame = svg.getBoundingClientRect(); return [...svg.querySelectorAll('text')].filter(text => {
    const box = text.getBoundingClientRect();
    return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1);
}).map(text => text.textContent); }"""


@dataclass
class Opened:
    """A page, and what happened while it was opened."""

    page: Page
    width: int
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture(scope="module", params=[DESK, PHONE], ids=["desk", "phone"])
def opened(request: pytest.FixtureRequest, browser: Browser, kept: Kept) -> Iterator[Opened]:
    width, phone = request.param, request.param == PHONE
    context = browser.new_context(viewport={"width": width, "height": 900}, is_mobile=phone, has_touch=phone)
    context.set_default_timeout(20_000)
    seen = Opened(context.new_page(), width)
    seen.page.on("request", lambda asked: seen.requests.append(asked.url))
    seen.page.on("console", lambda message: seen.errors.append(message.text) if message.type in ("error", "warning") else None)
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.goto(kept.report.as_uri())
    seen.page.wait_for_function(ALL_DRAWN)
    yield seen
    context.close()


def marks(page: Page, figure: str, kind: str) -> list[dict[str, float]]:
    paths = page.locator(f"#{figure} svg.marks .mark-{kind}.role-mark path")
    return [box for path in paths.all() if (box := path.bounding_box())]


def width_of_content(page: Page) -> int:
    return int(page.evaluate("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth)"))


def test_only_the_file_itself_is_requested(opened: Opened, kept: Kept) -> None:
    opened.page.mouse.wheel(0, 10_000)
    assert opened.requests == [kept.report.as_uri()]


def test_the_console_has_no_error_and_no_warning(opened: Opened) -> None:
    assert opened.errors == []


@pytest.mark.parametrize("figure", MARKS)
def test_a_figure_is_drawn_with_a_mark_for_everything_that_was_measured(opened: Opened, figure: str) -> None:
    frame = opened.page.locator(f"#{figure} svg.marks").bounding_box()
    assert frame is not None
    assert frame["width"] > 250
    assert frame["height"] > 150
    for kind, count in MARKS[figure].items():
        boxes = marks(opened.page, figure, kind)
        assert len(boxes) == count
        for box in boxes:
            assert box["width"] > 1
            assert frame["x"] - STROKE <= box["x"]
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + STROKE


@pytest.mark.parametrize("figure", MARKS)
def test_no_text_of_a_figure_is_cut_off(opened: Opened, figure: str) -> None:
    assert opened.page.locator(f"#{figure} svg.marks").evaluate(TEXTS_OUTSIDE) == []


@pytest.mark.parametrize("figure", ["robustness", "learning_curves", "weight_functions"])
def test_no_axis_has_the_same_label_twice(opened: Opened, figure: str) -> None:
    axes = opened.page.locator(f"#{figure}").evaluate(LABELS_OF_AXES)
    assert axes
    assert [labels for labels in axes if len(set(labels)) < len(labels)] == []


def test_the_page_does_not_scroll_sideways(opened: Opened) -> None:
    assert width_of_content(opened.page) == opened.width


def test_every_table_is_visible_and_its_last_column_can_be_reached(opened: Opened) -> None:
    tables = opened.page.locator("table")
    assert tables.count() == len(METRICS)
    for table in tables.all():
        table.scroll_into_view_if_needed()
        expect(table).to_be_visible()
        assert "" not in [text.strip() for text in table.locator("td, thead th, tbody th").all_inner_texts()]
        table.locator("..").evaluate(SCROLL_TO_THE_RIGHT)
        last, frame = table.locator("tbody td:last-child").first.bounding_box(), table.locator("..").bounding_box()
        assert last is not None
        assert frame is not None
        assert last["x"] + last["width"] <= frame["x"] + frame["width"] <= opened.width


def test_a_table_shows_what_is_recorded(opened: Opened, kept: Kept) -> None:
    means = kept.runs.groupby(["loss", "dataset", "noise"], sort=False)["test_accuracy_final"].mean()
    rows = opened.page.locator("table").first.locator("tbody tr")
    assert rows.count() == 3
    for loss, row in zip(("ce", "mae", "mae scale 1.5"), rows.all(), strict=True):
        name, *entries = row.locator("th, td").all_inner_texts()
        assert name == loss
        assert all(
            math.isclose(float(entry.split()[0]), mean, abs_tol=0.0051)
            for entry, mean in zip(entries, means[loss].to_list(), strict=True)
        )


def test_every_link_leads_to_a_file_or_a_place_on_the_page(opened: Opened, kept: Kept) -> None:
    """But for the menus of the figures, which offer a download at a click."""
    links = opened.page.locator("a[href]:not(.vega-actions a)")
    targets = [str(link.get_attribute("href")) for link in links.all()]
    places, files = [t for t in targets if t.startswith("#")], [t for t in targets if not t.startswith("#")]
    assert places == ["#findings", "#tables", "#figures", "#made"]
    assert all(opened.page.locator(place).count() == 1 for place in places)
    expected = {f"tables/{metric}.{kind}" for metric in METRICS for kind in ("csv", "md", "tex")}
    assert set(files) == expected | {"tables/cells.csv", "tables/seeds.csv"}
    assert all((kept.report.parent / file).stat().st_size > 0 for file in files)


def test_the_figures_follow_a_window_that_is_made_narrow(browser: Browser, kept: Kept) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 900})
    page.goto(kept.report.as_uri())
    page.wait_for_function(ALL_DRAWN)
    page.set_viewport_size({"width": PHONE, "height": 900})
    page.wait_for_function(
        f"() => [...document.querySelectorAll('.chart svg.marks')].every(svg => svg.getAttribute('width') < {PHONE})"
    )
    assert width_of_content(page) == PHONE
    page.close()


def test_without_chromium_the_tests_fail_and_name_the_package(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="need the Debian package chromium"):
        chromium(tmp_path / "chromium")
