"""plumb.gate: the rule is tested in C++; here, that a loop gets along with it."""

import math

import pytest

import plumb


def test_a_loop(tmp_path):
    ledger, ran = tmp_path / "gate.jsonl", {}
    for name, loss in {"same": 2.31, "better": 1.8, "worse": 2.5}.items():
        answer = plumb.gate(ledger, name, metric="valid_loss", seeds=10)
        while answer.next:
            seed = ran[answer.next] = ran.get(answer.next, 0) + 1
            value = {"base": 2.31}.get(answer.next, loss) + 0.01 * math.sin(7 * seed + loss)
            answer = plumb.gate(ledger, name, {answer.next: {seed: value}}, metric="valid_loss")
        assert bool(answer) == (name == "better"), answer
    assert answer.best == "better" and answer.decision == "reject"
    assert answer.gain["high"] < 0.5 and "hopeless" in repr(answer)
    lines = ledger.read_text().splitlines()
    assert len(lines) == 1 + sum(ran.values())
    ledger.write_text("\n".join(lines) + '\n{"arm": "wor')  # killed while it wrote
    answer = plumb.gate(ledger, "worse", {"worse": {1: 2.5 + 0.01 * math.sin(9.5)}}, metric="valid_loss")
    assert answer.decision == "reject" and len(answer.notes) == 1


def test_errors(tmp_path):
    with pytest.raises(plumb.Error, match="more of .quux. better"):
        plumb.gate(tmp_path / "gate.jsonl", "new", metric="quux")
    assert plumb.gate(tmp_path / "gate.jsonl", "new", metric="quux", larger_is_better=True).next == "base"
    with pytest.raises(plumb.Error, match="the ledger is of"):
        plumb.gate(tmp_path / "gate.jsonl", "new", metric="quux", larger_is_better=False)
    with pytest.raises(plumb.Error, match="began with base"):
        plumb.gate(tmp_path / "gate.jsonl", "base", metric="quux")
    for values in (2.31, {1: None}, ["x"]):
        with pytest.raises(plumb.Error, match="arm 'new': its values are no numbers.*\ngive a dict from seeds"):
            plumb.gate(tmp_path / "gate.jsonl", "new", {"new": values}, metric="quux")
    with pytest.raises(plumb.Error, match="same value"):
        plumb.gate(tmp_path / "gate.jsonl", "new", {"base": [1.0, 1.0, 1.0]}, metric="quux")
    answer = plumb.gate(tmp_path / "gate.jsonl", "new", {"base": [1.0, 1.1, 1.2], "new": [math.nan]}, metric="quux")
    assert answer.decision == "reject" and not answer and answer.gain["mean"] is None
