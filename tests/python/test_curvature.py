"""The Hessians of modules of PyTorch's, against dense ones by torch.autograd.functional and products by torch.func."""

import gc
import threading
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import plumb
from plumb import solver


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient


class OfCubes(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(3, 5), nn.Linear(5, 2)

    def forward(self, x):
        return self.outer(Cube.apply(self.inner(x)))


def transformer():
    """A tiny nn.Transformer, and its loss."""
    model = nn.Transformer(4, 2, 1, 1, 4, dropout=0, batch_first=True)
    source, target = torch.randn(2, 3, 4), torch.randn(2, 2, 4)

    def loss():
        with sdpa_kernel(SDPBackend.MATH):
            return (model(source, target) * target).square().mean()

    return model, loss


def convolutional():
    model = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.Softplus(), nn.Flatten(), nn.Linear(12, 4))
    x, y = torch.randn(6, 1, 4, 4), torch.randint(4, (6,))
    return model, lambda: nn.functional.cross_entropy(model(x), y)


def custom():
    model, x = OfCubes(), torch.randn(7, 3)
    return model, lambda: model(x).square().mean()


def of_transformers(kind, config):
    """A model of transformers, and a cross-entropy of its logits: its own is in float32."""
    tokens, labels = torch.randint(10, (2, 5)), torch.randint(10, (10,))
    model = kind(config).to(torch.float64).eval()
    return model, lambda: nn.functional.cross_entropy(model(tokens).logits.flatten(0, 1), labels)


def gpt2():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return of_transformers(transformers.GPT2LMHeadModel, transformers.GPT2Config(
        vocab_size=10, n_positions=5, n_embd=4, n_layer=1, n_head=2, attn_implementation="eager", initializer_range=0.5))


def bert():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    return of_transformers(transformers.BertForMaskedLM, transformers.BertConfig(
        vocab_size=10, max_position_embeddings=5, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        attn_implementation="eager", initializer_range=0.5))


@pytest.fixture(params=[transformer, convolutional, custom, gpt2, bert], ids=lambda make: make.__name__)
def problem(request):
    """(model, loss, dense Hessian) in float64."""
    torch.manual_seed(3)
    torch.set_default_dtype(torch.float64)
    try:
        model, loss = request.param()
        return model, loss, dense(model, loss)
    finally:
        torch.set_default_dtype(torch.float32)


def dense(model, loss):
    named = dict(model.named_parameters())
    shapes = [(name, tensor.shape, tensor.numel()) for name, tensor in named.items()]

    def of(flat):
        pieces = flat.split([size for _, _, size in shapes])
        values = {name: piece.reshape(shape) for (name, shape, _), piece in zip(shapes, pieces)}
        with torch.nn.utils.stateless._reparametrize_module(model, values, tie_weights=True):
            return loss()

    flat = torch.cat([tensor.detach().reshape(-1) for tensor in named.values()])
    return torch.autograd.functional.hessian(of, flat)


def places(model, match):
    """The rows of the Hessian for the parameters whose names satisfy `match`."""
    rows, begin = [], 0
    for name, tensor in model.named_parameters():
        rows += range(begin, begin + tensor.numel()) if match(name) else []
        begin += tensor.numel()
    return rows


def test_products_are_those_of_the_dense_hessian(problem):
    model, loss, expected = problem
    hessian = plumb.Hessian(loss, model)
    assert hessian.shape == tuple(expected.shape)
    found = hessian @ torch.eye(len(expected), dtype=torch.float64)
    assert expected.abs().max() > 1e-2
    assert (found - expected).abs().max() < 1e-10
    assert hessian.loss == pytest.approx(loss().item(), rel=1e-12)


def test_a_product_has_the_form_of_its_vector(problem):
    model, loss, expected = problem
    vector = {name: torch.randn_like(tensor) for name, tensor in model.named_parameters()}
    flat = torch.cat([piece.reshape(-1) for piece in vector.values()])
    as_dict = plumb.hvp(loss, model.named_parameters(), vector)
    as_list = plumb.hvp(loss, model.parameters(), list(vector.values()))
    assert list(as_dict) == list(vector) and all(a.equal(b) for a, b in zip(as_dict.values(), as_list))
    assert (torch.cat([piece.reshape(-1) for piece in as_list]) - expected @ flat).abs().max() < 1e-10
    with pytest.raises(plumb.Error, match="names and shapes"):
        plumb.hvp(loss, model, {"other": flat})


def test_extremes_lie_within_their_errors(problem):
    model, loss, expected = problem
    eigenvalues = torch.linalg.eigvalsh(expected)
    for steps in (5, 12, 30):
        found = plumb.spectrum(loss, model, steps=steps, probes=1)
        for extreme in (found.max, found.min):
            assert (eigenvalues - extreme.value).abs().min() <= extreme.error + 1e-12
    found = plumb.spectrum(loss, model, steps=len(expected), probes=1)
    assert float(found.max) == pytest.approx(eigenvalues[-1].item(), abs=1e-10)
    assert float(found.min) == pytest.approx(eigenvalues[0].item(), abs=1e-10)


def test_trace_and_density_estimate_those_of_all_eigenvalues(problem):
    model, loss, expected = problem
    exact = plumb.spectrum(loss, model, dense=True)
    assert np.abs(exact.eigenvalues - torch.linalg.eigvalsh(expected).numpy()).max() < 1e-10
    assert float(exact.trace) == pytest.approx(torch.trace(expected).item(), abs=1e-10)
    found = plumb.spectrum(loss, model, steps=60, probes=8, sigma=exact.density.sigma)
    # The variance of vᵀAv over v with independent normal elements is 2‖A‖². Errors estimated from eight probes are too small
    # where one eigenvalue is most of the trace.
    for estimate, matrix in ((float(found.trace), expected), (float(found.frobenius) ** 2, expected @ expected)):
        deviation = np.sqrt(2 / 8) * torch.linalg.norm(matrix).item()
        assert abs(estimate - torch.trace(matrix).item()) < 4 * deviation
    assert found.trace.error > 0 and found.frobenius.error > 0
    for density in (exact.density, found.density):
        assert np.trapezoid(density.y, density.x) == pytest.approx(1, abs=1e-3)
    assert (found.density.low <= found.density.y).all() and (found.density.y <= found.density.high).all()
    assert plumb.spectrum(loss, model, steps=5, probes=1).trace.error is None


def test_blocks_are_those_of_the_dense_hessian(problem):
    model, loss, expected = problem
    blocks = plumb.spectrum(loss, model, by=r".*", steps=len(expected), probes=1)
    assert list(blocks) == [name for name, _ in model.named_parameters()]
    for name, found in blocks.items():
        rows = places(model, lambda other: other == name)
        eigenvalues = torch.linalg.eigvalsh(expected[rows][:, rows])
        assert found.parameters == len(rows)
        assert float(found.max) == pytest.approx(eigenvalues[-1].item(), abs=1e-10)
        assert float(found.min) == pytest.approx(eigenvalues[0].item(), abs=1e-10)
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(loss(), list(model.parameters()))])
    assert blocks[name].gradient_norm == pytest.approx(gradient[rows].norm().item(), rel=1e-10)


def test_groups_by_patterns_and_tensors(problem):
    model, loss, expected = problem
    last = list(model.parameters())[-1]
    blocks = plumb.spectrum(loss, model, by={"weights": r"weight$", "last": last}, steps=len(expected), probes=1)
    rows = places(model, lambda name: name.endswith("weight"))
    assert blocks["weights"].parameters == len(rows) and blocks["last"].parameters == last.numel()
    largest = torch.linalg.eigvalsh(expected[rows][:, rows])[-1].item()
    assert float(blocks["weights"].max) == pytest.approx(largest, abs=1e-10)
    for wrong in ("nothing", {"none": "nothing"}, {"other": torch.zeros(1)}):
        with pytest.raises(plumb.Error, match="the names are"):
            plumb.spectrum(loss, model, by=wrong)


@pytest.mark.parametrize("memory", [6 << 30, 0])
def test_the_mean_over_batches(memory):
    torch.manual_seed(1)
    model = OfCubes().double()
    batches = torch.randn(3, 4, 3, dtype=torch.float64)
    together = plumb.Hessian(lambda: model(batches).square().mean(), model)
    divided = plumb.Hessian(lambda batch: model(batch).square().mean(), model, batches=list(batches), graph_memory=memory)
    vector = torch.randn(together.shape[0], dtype=torch.float64)
    assert (together @ vector - divided @ vector).abs().max() < 1e-12
    assert (together.gradient - divided.gradient).abs().max() < 1e-12
    whole, blocks = divided.spectrum(steps=10), divided.spectrum(by="inner|outer", steps=10)
    assert float(whole.max) == pytest.approx(float(together.spectrum(steps=10).max), abs=1e-12)
    assert float(blocks["outer"].max) == pytest.approx(float(together.spectrum(by="outer", steps=10)["outer"].max), abs=1e-12)


def test_float32_agrees_with_float64():
    torch.manual_seed(2)
    model, x = OfCubes(), torch.randn(7, 3)
    single = plumb.spectrum(lambda: model(x).square().mean(), model, dense=True)
    model, x = model.double(), x.double()
    double = plumb.spectrum(lambda: model(x).square().mean(), model, dense=True)
    assert (single.dtype, double.dtype) == ("float32", "float64")
    assert np.abs(single.eigenvalues - double.eigenvalues).max() < 1e-5 * float(double.max)


def test_the_seed_decides_the_probes():
    model, x = OfCubes(), torch.randn(7, 3)
    hessian = plumb.Hessian(lambda: model(x).square().mean(), model)
    first, same, other = (float(hessian.spectrum(steps=3, probes=1, seed=seed).max) for seed in (0, 0, 1))
    assert first == same != other


def test_the_basis_may_be_in_a_file(tmp_path):
    model, x = OfCubes(), torch.randn(7, 3)
    hessian = plumb.Hessian(lambda: model(x).square().mean(), model)
    kept, stored = hessian.spectrum(steps=9), hessian.spectrum(steps=9, basis_directory=tmp_path)
    assert (kept.max, kept.min, kept.trace) == (stored.max, stored.min, stored.trace)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(plumb.Error, match="cannot create a file there"):
        hessian.spectrum(basis_directory=tmp_path / "absent")


def test_lanczos_ends_once_the_largest_eigenvalue_is_known():
    values = torch.cat([torch.linspace(-1, 1, 398, dtype=torch.float64), torch.tensor([7.25, -3.125], dtype=torch.float64)])
    products = []

    def multiply(vector):
        products.append(vector)
        return values * vector

    largest, error = solver.largest_eigenvalue(multiply, solver.random_probe(400, values, 11, 0), 40)
    assert abs(largest - 7.25) <= error + 1e-12 and error <= 0.0725 and len(products) < 40


def test_other_types_are_refused():
    model, x = OfCubes(), torch.randn(7, 3)
    with pytest.raises(plumb.Error, match="float32, and the vector of type torch.float64"):
        plumb.Hessian(lambda: model(x).square().mean(), model) @ torch.ones(32, dtype=torch.float64)


def test_results_say_what_they_are():
    model, x = OfCubes(), torch.randn(7, 3)
    found = plumb.spectrum(lambda: model(x).square().mean(), model, steps=4, probes=2)
    assert repr(found).startswith("Hessian of 32 parameters (float32; Lanczos: 2 probes of 4 steps, seed 0;")
    assert "largest eigenvalue" in repr(found) and "standard error" in repr(found)
    assert "inner" in repr(plumb.spectrum(lambda: model(x).square().mean(), model, by="inner|outer", steps=4))
    assert repr(plumb.Measured(123.456, 0.02)) == "123.456 ± 0.02"
    assert repr(plumb.Measured(0.5, None)) == "0.5"


def test_other_threads_run_meanwhile():
    weight = torch.randn(400, 400, requires_grad=True)
    hessian = plumb.Hessian(lambda: (weight @ weight).sin().sum(), [weight])
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    hessian._operator.multiply([torch.ones(160_000)] * 20)
    during = counted[0] - before
    ended.set()
    thread.join()
    assert during > 1000


@pytest.mark.parametrize("matrix", [
    lambda model, x: plumb.Hessian(lambda: model(x).square().mean(), model),
    lambda model, x: plumb.Hessian(lambda batch: model(batch).square().mean(), model, batches=[x, x]),
    lambda model, x: plumb.GaussNewton(lambda outputs: outputs.square().mean(), model, outputs=lambda: model(x)),
])
def test_a_model_that_owns_its_matrix_is_freed(matrix):
    model = OfCubes()
    model.matrix = matrix(model, torch.randn(7, 3))
    model.matrix @ torch.ones(32)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_progress_is_told_and_may_interrupt():
    model, x = OfCubes(), torch.randn(7, 3)
    seen = []
    plumb.spectrum(lambda: model(x).square().mean(), model, steps=4, probes=2, progress=lambda *told: seen.append(told))
    assert [told[:2] for told in seen] == [(done, 8) for done in range(1, 9)] and "λ_max" in seen[0][2]

    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        plumb.spectrum(lambda: model(x).square().mean(), model, progress=interrupt)


def test_gpt2_of_transformers():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(5)
    config = transformers.GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=2, n_head=2, resid_pdrop=0,
                                     embd_pdrop=0, attn_pdrop=0, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).double().eval()
    tokens = torch.randint(20, (2, 8))
    values = {name: tensor.detach() for name, tensor in model.named_parameters()}
    vector = {name: torch.randn_like(tensor) for name, tensor in values.items()}

    def cross_entropy(logits):  # the model's own is in float32
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())

    def of(parameters):
        return cross_entropy(torch.func.functional_call(model, parameters, (tokens,)).logits)

    def loss():
        return cross_entropy(model(tokens).logits)

    # Forward over reverse, where Plumb goes reverse over reverse.
    expected = torch.func.jvp(torch.func.grad(of), (values,), (vector,))[1]
    found = plumb.hvp(loss, model, vector)
    assert max((found[name] - expected[name]).abs().max() for name in expected) < 1e-10
    blocks = plumb.spectrum(loss, model, by=r"h\.\d+", steps=5)
    assert list(blocks) == ["h.0", "h.1"]


def test_products_are_those_of_curvlinops():
    curvlinops = pytest.importorskip("curvlinops", reason="curvlinops is not installed")
    torch.manual_seed(6)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)).double()
    batches = [(torch.randn(5, 3, dtype=torch.float64), torch.randint(4, (5,))) for _ in range(3)]
    criterion = nn.CrossEntropyLoss()
    peer = curvlinops.HessianLinearOperator(model, criterion, list(model.parameters()), batches)
    ours = plumb.Hessian(lambda batch: criterion(model(batch[0]), batch[1]), model, batches=batches)
    vector = torch.randn(ours.shape[0], dtype=torch.float64)
    assert (ours @ vector - peer @ vector).abs().max() < 1e-10
