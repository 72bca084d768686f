"""plumb.coordinate_check: against exponents from theory (Yang et al. 2022, arXiv 2203.03466)."""

import math
import random

import numpy as np
import pytest
import torch
from torch import nn

import plumb
from plumb.scaling import scaling_exponent

WIDTHS = [64, 128, 256, 512, 1024]


class Net(nn.Module):
    """Three linear maps. `output_power`: of the width in the standard deviation of the last one's weights."""

    def __init__(self, width, output_power=-0.5):
        super().__init__()
        self.first, self.hidden, self.out = nn.Linear(8, width), nn.Linear(width, width), nn.Linear(width, 4)
        for layer, deviation in ((self.first, 8**-0.5), (self.hidden, width**-0.5), (self.out, width**output_power)):
            nn.init.normal_(layer.weight, 0, deviation)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(torch.relu(self.first(x)))))


def loss(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def batches():
    generator = torch.Generator().manual_seed(0)
    return [(torch.randn(32, 8, generator=generator), torch.randint(4, (32,), generator=generator))]


def maximal_update(model, kind=torch.optim.Adam, decay=0.0):
    """Adam's rates in μP: those of weights with a fan-in that grows fall as 1/width."""
    wide = [model.hidden.weight, model.out.weight]
    others = [p for p in model.parameters() if not any(p is one for one in wide)]
    rate = 1e-2 * 64 / model.hidden.in_features
    return kind([{"params": others, "lr": 1e-2}, {"params": wide, "lr": rate, "weight_decay": decay}])


def of(found, name, what="change by its update"):
    return next(row for row in found[name] if row.of == what)


def test_standard_parametrization_fails_and_names_the_layers():
    found = plumb.coordinate_check(Net, loss, batches(), WIDTHS)
    assert found.verdict == "no" and not found
    assert [fault.split(":")[0] for fault in found.faults] == ["hidden.weight", "out.weight"]
    for name, power in (("hidden.weight", 1), ("out.weight", 1), ("first.weight", 0), ("first.bias", 0)):
        assert of(found, name).exponent.value == pytest.approx(power, abs=0.1), name
    assert "scale its learning rate by width^-1.0" in repr(found)


def test_maximal_update_parametrization_passes():
    found = plumb.coordinate_check(lambda width: Net(width, -1), loss, batches(), WIDTHS, optimizer=maximal_update, seeds=12)
    assert found.verdict == "yes" and found and not found.faults, found
    assert of(found, "out", "output at the start").exponent.value == pytest.approx(-0.5, abs=0.1)


def test_a_wrong_initialization_is_told_from_a_wrong_rate():
    found = plumb.coordinate_check(Net, loss, batches(), WIDTHS, optimizer=maximal_update)
    assert found.verdict == "no" and len(found.faults) == 1
    assert found.faults[0].startswith("out.weight: ") and "initialized smaller" in found.faults[0]


def test_powers_of_gradient_descent():
    """One step on a standard net: δ of the last layer is of order 1, its weights of order width^-1/2."""
    found = plumb.coordinate_check(Net, loss, batches(), WIDTHS, seeds=8, steps=1,
                                   optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=1e-2))
    for name, power in (("first.weight", -0.5), ("hidden.weight", 0.5), ("out.weight", 1)):
        assert of(found, name).exponent.value == pytest.approx(power, abs=0.15), name


def test_a_last_layer_of_zeros():
    def make(width):
        net = Net(width)
        nn.init.zeros_(net.out.weight)
        return net

    found = plumb.coordinate_check(make, loss, batches(), WIDTHS, optimizer=maximal_update, seeds=12)
    assert of(found, "out", "output at the start").trend == "zero"
    assert of(found, "hidden.weight").trend == "constant" and found.verdict == "yes", found


def test_weight_decay_that_falls_with_the_width():
    def optimizer(model):
        return maximal_update(model, torch.optim.AdamW, 0.1)

    found = plumb.coordinate_check(lambda width: Net(width, -1), loss, batches(), [64, 128], optimizer=optimizer, seeds=2)
    assert of(found, "hidden.weight", "decay per step").exponent.value == -1
    assert of(found, "first.weight", "decay per step").exponent.value == 0  # AdamW's default, at one rate
    assert any(fault.startswith("hidden.weight: weight decay") and "width^1.00" in fault for fault in found.faults)


class Deep(nn.Module):
    """A stream to which each of `depth` layers adds `share(depth)`."""

    def __init__(self, width, depth, share):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.stream, self.share = nn.Identity(), share(depth)
        for layer in self.layers:
            nn.init.zeros_(layer.weight)
            nn.init.ones_(layer.bias)

    def forward(self, x):
        x = x.repeat(1, self.layers[0].in_features)
        for layer in self.layers:
            x = x + self.share * layer(x)
        return self.stream(x)


@pytest.mark.parametrize("power", [0, -1])
def test_depth(power):
    def make(width, depth):
        return Deep(width, depth, lambda depth: depth**power)

    found = plumb.coordinate_check(make, lambda m, x: m(x).square().mean(), [torch.zeros(3, 1)], iter([2, 4]), depths=[2, 4, 8],
                                   seeds=2)
    row = next(row for row in found["stream"] if row.axis == "depth" and row.of == "output at the start")
    assert (row.exponent.value, row.exponent.error) == (1 + power, 0)  # n layers add 1 each, or 1/n
    assert row.trend == ("grows" if power == 0 else "constant")
    names = {row.name for row in found.rows if row.axis == "depth"}
    assert {"layers.first", "layers.last"} < names and not any("1" in name for name in names)


def test_interval():
    sizes = np.array([[1.0, 2.0, 4.4], [1.1, 2.1, 4.0], [0.9, 2.2, 4.1]])
    found, _, trend = scaling_exponent([1, 2, 4], sizes, 0.1)
    slopes = [np.polyfit(np.log([1, 2, 4]), np.log(row), 1)[0] for row in sizes]
    half = 4.302652730 * np.std(slopes, ddof=1) / math.sqrt(3)
    assert (found.value, found.error) == pytest.approx((np.mean(slopes), half), abs=1e-4) and trend == "grows"
    assert scaling_exponent([1, 2], np.array([[1.0, 1.0]]), 0.1)[2] == "undecided"  # one seed
    assert scaling_exponent([1, 2], np.zeros((2, 2)), 0.1)[2] == "zero"
    assert scaling_exponent([1, 2], np.array([[0.0, 1.0]] * 2), 0.1)[2] == "diverged"
    assert scaling_exponent([1, 2], np.array([[1.0, math.inf]] * 2), 0.1)[2] == "diverged"


def test_layers_of_pytorch_and_random_numbers():
    def make(width):
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0, batch_first=True)
        model = nn.Sequential(nn.Linear(3, width), nn.Dropout(0.5), nn.TransformerEncoder(layer, 1), nn.Linear(width, 1))
        random.random(), np.random.rand()
        return model.eval() if width == 8 else model

    state, others = torch.get_rng_state(), [random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2:]]
    found = plumb.coordinate_check(make, lambda m, x: m(x).square().mean(), [torch.ones(2, 4, 3)], [8, 16], seeds=2)
    assert torch.equal(state, torch.get_rng_state())
    assert others == [random.getstate(), np.random.get_state()[1].tolist(), np.random.get_state()[2:]]
    assert of(found, "2.layers.0.self_attn.in_proj_weight") and of(found, "2.layers.0.self_attn.out_proj.weight")
    frame = pytest.importorskip("pandas") and found.to_pandas()
    assert list(frame["verdict"]) == [row.verdict for row in found.rows]


def test_errors():
    with pytest.raises(plumb.Error, match="two scales"):
        plumb.coordinate_check(Net, loss, batches(), [64])
    with pytest.raises(plumb.Error, match="not every model has"):
        plumb.coordinate_check(lambda width: nn.Sequential(nn.Linear(8, 4), *[nn.ReLU()] * (width == 2)), loss, batches(),
                               [1, 2])


def test_sizes_are_those_of_a_run_by_hand():
    found = plumb.coordinate_check(Net, loss, batches(), [16, 32], seeds=2, steps=2)
    torch.manual_seed(1)
    model, (batch,) = Net(32), batches()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start, weight = model.first(batch[0]).detach(), model.first.weight.detach().clone()
    update = None
    for _ in range(2):
        optimizer.zero_grad()
        loss(model, batch).backward()
        optimizer.step()
        update = model.first.weight.detach() - weight if update is None else update
    for what, tensor in (("output at the start", start), ("change of the output", model.first(batch[0]).detach() - start)):
        assert of(found, "first", what).sizes[1, 1] == pytest.approx(tensor.square().mean().sqrt().item(), rel=1e-5), what
    alone = (batch[0] @ update.T).square().mean().sqrt().item()
    assert of(found, "first.weight").sizes[1, 1] == pytest.approx(alone, rel=1e-3)  # a difference of outputs in float32


def test_several_optimizers_are_those_of_one_with_groups():
    def make(width):
        return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 4))

    def one(model):
        return torch.optim.SGD([{"params": part.parameters(), "lr": rate} for part, rate in ((model[0], 0.1), (model[2], 0.01))])

    def two(model):
        return [torch.optim.SGD(part.parameters(), lr=rate) for part, rate in ((model[0], 0.1), (model[2], 0.01))]

    found = [plumb.coordinate_check(make, lambda m, x: m(x).square().mean(), [torch.ones(2, 4)], [8, 16], optimizer=optimizer,
                                    seeds=2) for optimizer in (one, two)]
    assert repr(found[0]) == repr(found[1])
