"""plumb.judge: the rules are tested in C++; here, that values reach them."""

import math

import numpy as np
import pytest

import plumb

FIRST, SECOND = [2.31, 2.35, 2.33, 2.30, 2.34], [2.28, 2.30, 2.27, 2.29, 2.31]


def test_verdicts():
    found = plumb.judge({"base": FIRST, "new": SECOND})
    assert found["new"] and found["new"].gain == pytest.approx(0.036)
    # scipy.stats: 0.036 ± t.ppf(0.95, 7) · √(s₁²/5 + s₂²/5)
    assert found["new"].low == pytest.approx(0.013905, abs=1e-6)
    assert found.noise_floor == pytest.approx(0.0601332, abs=1e-6)
    assert "better than base?\nnew: supported. Its mean is 0.036 lower" in repr(found)
    assert not plumb.judge({"base": SECOND, "new": FIRST})["new"]
    assert plumb.judge({"base": FIRST, "new": SECOND}, larger_is_better=True)["new"].outcome == "contradicted"
    assert plumb.judge({"base": FIRST, "new": SECOND}, by_seed=True)["new"].low == pytest.approx(0.017415, abs=1e-6)
    assert plumb.judge({"base": FIRST, "new": SECOND}, looks=5)["new"].confidence > 0.9
    assert plumb.judge({"base": FIRST, "new": SECOND}, margin=0.03)["new"].seeds_needed > 50


def test_direction_is_that_of_the_metric():
    arms = {"base": [0.80, 0.81, 0.82], "new": [0.90, 0.91, 0.92]}
    assert plumb.judge(arms, metric="accuracy")["new"]
    assert plumb.judge(arms, metric="eval/loss")["new"].outcome == "contradicted"
    assert plumb.judge(arms, metric="eval/loss", larger_is_better=True)["new"]
    with pytest.raises(plumb.Error, match='is more of "speed" better'):
        plumb.judge(arms, metric="speed")


def test_one_run_against_several():
    found = plumb.judge({"base": FIRST, "new": [2.20]})["new"]
    assert found and found.one_run
    # 0.126 ± t.ppf(0.95, 4) · s · √(1 + 1/5), s² = 0.00043
    assert found.low == pytest.approx(0.126 - 2.131847 * math.sqrt(0.00043 * 1.2), abs=1e-6)
    assert plumb.judge({"base": FIRST, "new": [2.30]})["new"].outcome == "undecided"
    assert "says nothing about luck" in plumb.judge({"base": FIRST[:2], "new": [2.20]})["new"].reason


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
    for values in (2.0, "2.31", [[1.0, 2.0], [2.0, 3.0]]):
        with pytest.raises(plumb.Error, match="arm 'new': its values are no numbers"):
            plumb.judge({"base": FIRST, "new": values})
    with pytest.raises(plumb.Error, match="seeds rather than learning rates"):
        plumb.judge({"base": {1: FIRST[:1], 2: FIRST[1:2]}, "new": {1: SECOND[:1], 2: SECOND[1:2]}})
    assert plumb.judge({"base": FIRST, "new": [*SECOND, None]}).arms[1].failed == 1
    with pytest.raises(KeyError):
        plumb.judge({"base": FIRST, "new": SECOND})["old"]


def test_arms_without_runs_are_an_error():
    for by_seed in (False, True):
        with pytest.raises(plumb.Error, match="no runs"):
            plumb.judge({"a": [], "b": []}, by_seed=by_seed)


def test_keys_of_sweeps():
    """Rates may be texts, of which the order is that of the numbers; seeds are refused, NumPy's too, as are words."""
    rates = {"1e-3": [x + 0.2 for x in FIRST], "1e-1": [x + 0.3 for x in FIRST], "1e-2": FIRST}
    better = {rate: [x - 1 for x in values] for rate, values in rates.items()}
    found = plumb.judge({"base": rates, "new": better})
    assert found.arms[1].learning_rate == 1e-2 and found["new"].outcome == "supported"
    by_seed = {np.int64(seed): [value] for seed, value in enumerate(FIRST)}
    with pytest.raises(plumb.Error, match="seeds rather than learning rates"):
        plumb.judge({"base": by_seed, "new": by_seed})
    with pytest.raises(plumb.Error, match="arm 'base': its values are no numbers.*seed1.*\ngive a list of final values"):
        plumb.judge({"base": {"seed1": [2.3], "seed2": [2.2]}, "new": SECOND})
