"""plumb.judge: the rules are tested in C++; here, that values reach them."""

import math

import pytest

import plumb

FIRST, SECOND = [2.31, 2.35, 2.33, 2.30, 2.34], [2.28, 2.30, 2.27, 2.29, 2.31]


def test_verdicts():
    found = plumb.judge({"base": FIRST, "new": SECOND})
    assert found["new"] and found["new"].gain == pytest.approx(0.036)
    # scipy.stats: 0.036 ± t.ppf(0.95, 7) · √(s₁²/5 + s₂²/5)
    assert found["new"].low == pytest.approx(0.013905, abs=1e-6)
    assert found.noise_floor == pytest.approx(0.0601332, abs=1e-6)
    assert "new is better than base: supported" in repr(found)
    assert not plumb.judge({"base": SECOND, "new": FIRST})["new"]
    assert plumb.judge({"base": FIRST, "new": SECOND}, larger_is_better=True)["new"].outcome == "contradicted"
    assert plumb.judge({"base": FIRST, "new": SECOND}, by_seed=True)["new"].low == pytest.approx(0.017415, abs=1e-6)
    assert plumb.judge({"base": FIRST, "new": SECOND}, looks=5)["new"].confidence > 0.9
    assert plumb.judge({"base": FIRST, "new": SECOND}, margin=0.03)["new"].seeds_needed > 50


def test_failed_runs_and_sweeps():
    assert plumb.judge({"base": [math.nan] * 4, "new": FIRST[:4]})["new"].outcome == "supported"
    rates = {1e-3: [x + 0.2 for x in FIRST], 2e-3: FIRST, 4e-3: [x + 0.3 for x in FIRST]}
    better = {rate: [x - 1 for x in values] for rate, values in rates.items()}
    found = plumb.judge({"base": rates, "new": better})
    assert found.arms[1].learning_rate == 2e-3 and found["new"].outcome == "supported"


def test_errors():
    with pytest.raises(plumb.Error, match="one arm alone"):
        plumb.judge({"base": FIRST})
    with pytest.raises(plumb.Error, match="dict from names"):
        plumb.judge([FIRST, SECOND])
    with pytest.raises(KeyError):
        plumb.judge({"base": FIRST, "new": SECOND})["old"]


def test_arms_without_runs_are_an_error():
    for by_seed in (False, True):
        with pytest.raises(plumb.Error, match="no runs"):
            plumb.judge({"a": [], "b": []}, by_seed=by_seed)
