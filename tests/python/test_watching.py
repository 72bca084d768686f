"""plumb.Watch: against dense Hessians and formulas, and without a trace in the run."""

import math

import pytest
import torch
from torch import nn

import plumb


def task(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.2), nn.Linear(6, 2))
    return model, torch.randn(20, 4), torch.randn(20, 2)


def train(kind, watched, steps=7, **settings):
    model, x, y = task()
    optimizer = kind(model.parameters(), **settings)
    watch = plumb.Watch(model, optimizer, every=3, loss=lambda: nn.functional.mse_loss(model(x), y)) if watched else None
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return model, watch


@pytest.mark.parametrize("kind, settings", [(torch.optim.AdamW, {"lr": 1e-2}),
                                            (torch.optim.SGD, {"lr": 1e-2, "momentum": 0.9})])
def test_leaves_no_trace(kind, settings):
    plain, _ = train(kind, False, **settings)
    watched, watch = train(kind, True, **settings)
    for (name, a), b in zip(plain.state_dict().items(), watched.state_dict().values()):
        assert torch.equal(a, b), name
    assert [values["step"] for values in watch.history] == [1, 3, 6] and not watch.new
    assert watched.training


def test_sharpness_of_a_quadratic():
    weights = nn.ParameterList([nn.Parameter(torch.tensor([1.0, 2.0], dtype=torch.float64))])
    curvature = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)

    def loss():
        return 0.5 * weights[0] @ curvature @ weights[0]

    optimizer = torch.optim.SGD(weights.parameters(), lr=0.1, momentum=0.5)
    watch = plumb.Watch(weights, optimizer, loss=loss)
    loss().backward()
    optimizer.step()
    largest = (5 + math.sqrt(5)) / 2
    assert watch.new and watch.values["sharpness"] == pytest.approx(largest, rel=1e-9)
    assert watch.values["critical_rate"] == pytest.approx(3 / largest, rel=1e-9)
    assert watch.values["rate_share"] == pytest.approx(0.1 * largest / 3, rel=1e-9)
    gradient = curvature @ torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert watch.values["gradient_norm"] == pytest.approx(float(gradient.norm()), rel=1e-12)
    assert watch.values["update_ratio"] == pytest.approx(0.1 * float(gradient.norm()) / math.sqrt(5), rel=1e-12)


def test_preconditioned_sharpness_is_that_of_the_dense_matrix():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()
    x, y = torch.randn(9, 3).double(), torch.randn(9, 1).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.8, 0.95), eps=1e-3)
    watch = plumb.Watch(model, optimizer, every=4, loss=lambda: nn.functional.mse_loss(model(x), y), steps=40)
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    parameters = list(model.parameters())

    def of_flat(flat):
        pieces = flat.split([p.numel() for p in parameters])
        named = {n: piece.view_as(p) for (n, p), piece in zip(model.named_parameters(), pieces)}
        return nn.functional.mse_loss(torch.func.functional_call(model, named, x), y)

    dense = torch.autograd.functional.hessian(of_flat, torch.cat([p.detach().flatten() for p in parameters]))
    second = torch.cat([optimizer.state[p]["exp_avg_sq"].flatten() for p in parameters])
    preconditioner = (1 - 0.8**4) * ((second / (1 - 0.95**4)).sqrt() + 1e-3)
    expected = torch.linalg.eigvals(dense / preconditioner[:, None]).real.max().item()
    # The search ends at a residual of a hundredth, which leaves the value far closer.
    assert watch.values["sharpness"] == pytest.approx(expected, rel=1e-2)
    assert watch.values["critical_rate"] == pytest.approx((2 + 1.6) / 0.2 / watch.values["sharpness"], rel=1e-12)
    assert 0 <= watch.values["adam_epsilon_share"] < 1


def test_blocks_and_errors():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8), 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = plumb.Watch(model, optimizer)
    model(torch.randn(3, 1, 8)).square().mean().backward()
    optimizer.step()
    parts = [watch.values[f"gradient_norm/layers.{layer}"] for layer in (0, 1)]
    assert watch.values["gradient_norm"] == pytest.approx(math.hypot(*parts), rel=1e-9)
    watch.close()
    optimizer.step()
    assert len(watch.history) == 1
    with pytest.raises(plumb.Error, match="none of the model's parameters"):
        plumb.Watch(nn.Linear(2, 2), optimizer)
