"""Gauss–Newton matrices of modules of PyTorch's, against JᵀHJ from dense Jacobians and Hessians by torch.autograd.functional."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import plumb


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layer = nn.Embedding(5, 4), nn.TransformerEncoderLayer(4, 2, 6, dropout=0, batch_first=True)
        self.head = nn.Linear(4, 5)

    def forward(self, tokens):
        with sdpa_kernel(SDPBackend.MATH):
            return self.head(self.layer(self.embedding(tokens)))


def attends():
    """(model, input, loss of the outputs): logits of three dimensions, and labels of which some are left out."""
    labels = torch.tensor([[1, 4, -100], [0, 2, 3]])
    return Attends(), torch.tensor([[0, 1, 4], [2, 3, 0]]), lambda z: nn.functional.cross_entropy(z.flatten(0, 1),
                                                                                                 labels.flatten())


def convolutional():
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Softplus(), nn.Flatten(), nn.Linear(12, 4))
    weights = torch.rand(6, 1)
    return model, torch.randn(6, 1, 4, 4), lambda z: (weights * z**4).mean()  # depends on where z is


@pytest.fixture(params=[attends, convolutional], ids=lambda make: make.__name__)
def problem(request):
    """(model, input, loss, dense Gauss–Newton matrix, dense Hessian) in float64."""
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    try:
        model, x, loss = request.param()
        return model, x, loss, *dense(model, x, loss)
    finally:
        torch.set_default_dtype(torch.float32)


def dense(model, x, loss):
    named = dict(model.named_parameters())

    def outputs(flat):
        pieces = flat.split([tensor.numel() for tensor in named.values()])
        values = {name: piece.reshape(named[name].shape) for name, piece in zip(named, pieces)}
        with torch.nn.utils.stateless._reparametrize_module(model, values):
            return model(x)

    flat = torch.cat([tensor.detach().reshape(-1) for tensor in named.values()])
    z = outputs(flat).detach()
    jacobian = torch.autograd.functional.jacobian(outputs, flat).reshape(z.numel(), -1)
    curvature = torch.autograd.functional.hessian(loss, z).reshape(z.numel(), z.numel())
    return (jacobian.T @ curvature @ jacobian,
            torch.autograd.functional.hessian(lambda flat: loss(outputs(flat)), flat))


def test_products_are_those_of_the_dense_matrix(problem):
    model, x, loss, expected, hessian = problem
    matrix = plumb.GaussNewton(loss, model, outputs=lambda: model(x))
    assert matrix.shape == tuple(expected.shape)
    found = matrix @ torch.eye(len(expected), dtype=torch.float64)
    assert expected.abs().max() > 1e-2 and (expected - hessian).abs().max() > 1e-3
    assert (found - expected).abs().max() < 1e-10
    assert matrix.loss == pytest.approx(loss(model(x)).item(), rel=1e-12)
    gradient = torch.cat([piece.flatten() for piece in torch.autograd.grad(loss(model(x)), list(model.parameters()))])
    assert (matrix.gradient - gradient).abs().max() < 1e-12


@pytest.mark.parametrize("memory", [0, 6 << 30])
def test_of_batches_it_is_the_mean(problem, memory):
    model, x, loss, _, _ = problem
    model.eval()  # of BatchNorm
    one, other = x, x.flip(0)
    expected = (dense(model, one, loss)[0] + dense(model, other, loss)[0]) / 2
    matrix = plumb.GaussNewton(lambda z, batch: loss(z), model, outputs=model, batches=[one, other], graph_memory=memory)
    assert (matrix @ torch.eye(len(expected), dtype=torch.float64) - expected).abs().max() < 1e-10


def test_spectra_of_the_whole_and_of_blocks(problem):
    model, x, loss, expected, _ = problem
    found = plumb.spectrum(loss, model, outputs=lambda: model(x), dense=True)
    assert np.abs(found.eigenvalues - torch.linalg.eigvalsh(expected).numpy()).max() < 1e-10
    assert repr(found).startswith("Gauss–Newton matrix of ")
    rows, blocks, begin = {}, {}, 0
    for name, tensor in model.named_parameters():
        rows.setdefault(name.split(".")[0], []).extend(range(begin, begin + tensor.numel()))
        begin += tensor.numel()
    blocks = plumb.spectrum(loss, model, outputs=lambda: model(x), by=r"^[^.]+", steps=80, probes=1)
    assert list(blocks) == list(rows) and "Gauss–Newton" in repr(blocks)
    for name, block in blocks.items():
        largest = torch.linalg.eigvalsh(expected[rows[name]][:, rows[name]])[-1].item()
        assert float(block.max) == pytest.approx(largest, abs=1e-10 + block.max.error)


def test_a_convex_loss_has_no_negative_eigenvalue():
    torch.manual_seed(0)
    model, x, loss = attends()
    found = plumb.spectrum(loss, model, outputs=lambda: model(x), steps=40)
    assert found.min.value >= -1e-5 * found.max.value and found.max.value > 0
    assert plumb.spectrum(lambda: loss(model(x)), model, steps=40).min.value < -1e-2 * found.max.value


def test_errors():
    torch.manual_seed(0)
    model, x, other = nn.Linear(2, 3), torch.randn(4, 2), nn.Linear(1, 1)

    def matrix(loss, outputs, parameters=model, **options):
        return plumb.GaussNewton(loss, parameters, outputs=outputs, **options)

    with pytest.raises(plumb.Error, match="linear in the outputs"):
        matrix(lambda z: z.mean(), lambda: model(x))
    with pytest.raises(plumb.Error, match="the outputs have no graph"):
        matrix(lambda z: z.square().mean(), lambda: model(x).detach())
    with pytest.raises(plumb.Error, match="the outputs are of type tuple"):
        matrix(lambda z: z.square().mean(), lambda: (model(x),))
    with pytest.raises(plumb.Error, match="shape"):
        matrix(lambda z: z.square(), lambda: model(x))
    with pytest.raises(plumb.Error, match="the outputs do not depend on other.weight"):
        matrix(lambda z: z.square().mean(), lambda: model(x), {"weight": model.weight, "other.weight": other.weight})
    with pytest.raises(plumb.Error, match="changes from call to call"):
        matrix(lambda z: z.square().mean(), lambda: nn.functional.dropout(model(x)))
    with pytest.raises(plumb.Error, match="no batches"):
        matrix(lambda z, batch: z.square().mean(), model, batches=[])
    with pytest.raises(plumb.Error, match="no function of the outputs"):
        matrix([lambda z: z.square().mean()], lambda: model(x))
    kept = matrix(lambda z: z.square().mean(), lambda: model(x))
    with torch.no_grad():
        model.weight.add_(1)
    with pytest.raises(plumb.Error, match="changed since this Gauss–Newton matrix"):
        kept @ torch.ones(9)
