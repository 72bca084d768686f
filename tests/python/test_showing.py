"""Results as HTML: complete, well-formed, and without anything from elsewhere."""

import math
import re
import xml.etree.ElementTree

import numpy as np
import pytest
import torch
from torch import nn

import plumb
from plumb.showing import density_figure, section


def results():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(20, 3)

    def loss(model, x):
        return model(x).square().mean()

    def make(width):
        return nn.Sequential(nn.Linear(3, width), nn.Linear(width, 1))

    return [plumb.spectrum(lambda: loss(model, x), model, steps=10),
            plumb.spectrum(lambda: loss(model, x), model, steps=10, probes=1),
            plumb.spectrum(lambda: loss(model, x), model, dense=True),
            plumb.spectrum(lambda: loss(model, x), model, by=r"^\d", steps=5),
            plumb.probe(model, loss, [x], seeds=2), plumb.probe(model, loss, [x]),
            plumb.coordinate_check(make, loss, [x], [4, 8], seeds=2), plumb.coordinate_check(make, loss, [x], [4, 8], seeds=1),
            plumb.judge({"base": [2.1, 2.3, 2.2], "<new>": [1.1, 1.2, math.nan], "one": [2.0]})]


def parsed(text):
    """As XML, which is stricter than HTML."""
    return xml.etree.ElementTree.fromstring(re.sub(r"<!DOCTYPE html>|<meta[^>]*>", "", text))


def test_every_result_shows_itself(tmp_path):
    found = results()
    for one in found:
        root = parsed(f"<div>{one._repr_html_()}</div>")
        text = " ".join(" ".join(root.itertext()).split())
        words = [word for word in repr(one).split() if word not in ("note:",)]
        assert [word for word in words if word not in text] == []
    page = plumb.report(["Before <training>", *found], tmp_path / "page.html", title="A & B").read_text(encoding="utf-8")
    root = parsed(page)
    assert root.find("head/title").text == "A & B" and page.count("<style>") == 1
    assert sum(name.tag.endswith("svg") for name in root.iter()) == 2 * (3 + 1)
    assert not re.search(r'(src|href)=|url\(|@import|<script', page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert plumb.report(found[0], tmp_path / "one.html").exists()
    with pytest.raises(plumb.Error, match="type int has no form for a page"):
        plumb.report([3], tmp_path / "none.html")


def test_density_figure():
    x = np.linspace(-1, 3, 5)
    y = np.array([1e-3, 1.0, 1e-1, 1e-2, 0])
    root = xml.etree.ElementTree.fromstring(density_figure({"H": plumb.Density(x, y, y / 2, y * 2, 0.1)}))
    paths = list(root.iter("{http://www.w3.org/2000/svg}path"))
    curve = next(path for path in paths if path.get("fill") == "none")
    points = [tuple(map(float, pair)) for pair in re.findall(r"[ML]([-.\d]+) ([-.\d]+)", curve.get("d"))]
    assert len(points) == 4  # zero has no place on a logarithmic axis
    steps = [after[0] - before[0] for before, after in zip(points, points[1:])]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    decades = [after[1] - before[1] for before, after in zip(points, points[1:])]
    assert decades[0] == pytest.approx(-3 * decades[1], abs=0.5) and decades[2] == pytest.approx(decades[1], abs=0.2)
    assert sum(path.get("opacity") == "0.16" for path in paths) == 1  # the band
    assert density_figure({"H": plumb.Density(x, y * math.nan, None, None, 0.1)}) == ""


def test_cells():
    assert "&lt;b&gt;" in section("<b>") and "<td>&amp;</td>" in section("", [("a",), ("&",)])
