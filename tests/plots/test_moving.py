"""A picture that moves: every frame is in the page, once, and the page asks nobody for more."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from io import BytesIO

import matplotlib.image as images
import numpy as np
import pytest
from matplotlib.figure import Figure

from bbb_numpy.plots.moving import slider

FRAMES = 3


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def of(self, kind):
        return [attributes for tag, attributes in self.tags if tag == kind]


@pytest.fixture(scope="module")
def page():
    figure = Figure(figsize=(1, 1))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    bar = ax.axvspan(0, 1, color="black")
    ax.set_xlim(0, FRAMES)
    return slider(figure, lambda k: bar.set_x(k), FRAMES, 'a bar < "that" moves', dpi=30)


def test_the_frames_are_those_of_the_update_in_order(page):
    for k, found in enumerate(Page(page).of("img")):
        raw = b64decode(found["src"].removeprefix("data:image/png;base64,"))
        dark = images.imread(BytesIO(raw))[15, :, 0] < 0.5
        assert abs(np.flatnonzero(dark).mean() - (k + 0.5) * 10 + 0.5) < 1


def test_one_frame_is_shown_and_the_slider_reaches_all(page):
    found = Page(page)
    assert ["hidden" in one for one in found.of("img")] == [False, True, True]
    (bar,) = found.of("input")
    assert (bar["min"], bar["max"], bar["value"]) == ("0", "2", "0")
    assert found.of("button")


def test_the_page_asks_no_other_page_for_anything(page):
    assert not re.search(r"https?:|<script|<link", page)
