"""On a GPU, every measurement is that of the CPU. Without one, these tests are skipped."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import plumb

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
DEVICES = ["cpu", "cuda"]


class Decoder(nn.Module):
    def __init__(self, width=16, vocabulary=19):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(width), enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device, dtype=self.head.weight.dtype)
        return self.head(self.body(self.embed(tokens), mask=mask, is_causal=True))


def loss(model, batch):
    with sdpa_kernel(SDPBackend.MATH):
        return nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def task(device, dtype=torch.float64):
    """The same weights and batches on any device."""
    torch.manual_seed(0)
    model = Decoder().to(dtype).eval()
    generator = torch.Generator().manual_seed(1)
    batches = [torch.randint(19, (4, 9), generator=generator) for _ in range(3)]
    return model.to(device), [batch.to(device) for batch in batches]


def on_both(measure):
    return [measure(device) for device in DEVICES]


def close(found, expected, rel=1e-8):
    assert float(found) == pytest.approx(float(expected), rel=rel, abs=1e-12, nan_ok=True)


def test_spectra():
    def measure(device):
        model, batches = task(device)
        return (plumb.spectrum(lambda: loss(model, batches[0]), model, steps=30, probes=2),
                plumb.spectrum(lambda batch: loss(model, batch), model, batches=batches, steps=15, probes=1),
                *plumb.spectrum(lambda: loss(model, batches[0]), model, by=r"layers\.\d+", steps=12, probes=1).values())

    for there, here in zip(*reversed(on_both(measure))):
        assert there.parameters == here.parameters
        close(there.loss, here.loss, 1e-12)
        close(there.gradient_norm, here.gradient_norm, 1e-12)
        for name in ("max", "min", "trace", "frobenius"):
            close(getattr(there, name).value, getattr(here, name).value, 1e-6)


def test_single_precision():
    def measure(device):
        model, batches = task(device, torch.float32)
        return plumb.spectrum(lambda: loss(model, batches[0]), model, steps=20, probes=1)

    here, there = on_both(measure)
    close(there.max.value, here.max.value, 1e-4)
    close(there.trace.value, here.trace.value, 1e-4)


def test_products():
    def measure(device):
        model, batches = task(device)
        count = sum(tensor.numel() for tensor in model.parameters())
        vector = torch.linspace(-1, 1, count, dtype=torch.float64).to(device)
        targets = batches[0][:, 1:].flatten()

        def logits():
            with sdpa_kernel(SDPBackend.MATH):
                return model(batches[0][:, :-1]).flatten(0, 1)

        gauss_newton = plumb.GaussNewton(lambda z: nn.functional.cross_entropy(z, targets), model, outputs=logits)
        products = plumb.hvp(lambda: loss(model, batches[0]), model, vector), gauss_newton @ vector
        assert all(product.device.type == device for product in products)
        return products

    for here, there in zip(*on_both(measure)):
        assert float((there.cpu() - here).norm()) <= 1e-11 * float(here.norm())


def test_a_basis_in_a_file_is_refused(tmp_path):
    model, batches = task("cuda")
    with pytest.raises(plumb.Error, match="measure on the CPU"):
        plumb.spectrum(lambda: loss(model, batches[0]), model, steps=10, probes=1, basis_directory=tmp_path)


def test_probe():
    def measure(device):
        model, batches = task(device)
        return plumb.probe(model, loss, batches)

    here, there = on_both(measure)
    assert [row.module for row in there.rows] == [row.module for row in here.rows]
    for row, expected in zip(there.rows, here.rows):
        for name in ("output", "gradient", "parameter_gradient", "backward_gain"):
            if getattr(expected, name) is not None:
                close(getattr(row, name), getattr(expected, name))


@pytest.mark.parametrize("rate, verdict", [(1e-3, "trains"), (3e4, "other_rate")])
def test_check(rate, verdict):
    def measure(device):
        model, batches = task(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
        found = plumb.check(model.train(), optimizer, loss, batches, budget=300)
        assert all(tensor.device.type == device and tensor.grad is None for tensor in model.parameters())
        return found

    here, there = on_both(measure)
    assert there.verdict == verdict and here.verdict == verdict
    close(there.first_loss, here.first_loss)
    if here.critical_rate:
        close(there.critical_rate, here.critical_rate, 0.05)
    # Its trials drop out other elements, so the rate agrees as far as that changes it.
    assert abs(math.log2(float(there.largest_stable_rate) / float(here.largest_stable_rate))) < 2


def test_check_leaves_the_generators():
    model, batches = task("cuda")
    model.train()
    state = torch.cuda.get_rng_state(), torch.get_rng_state()
    plumb.check(model, torch.optim.AdamW(model.parameters(), lr=1e-3), loss, batches, budget=60)
    assert torch.equal(torch.cuda.get_rng_state(), state[0]) and torch.equal(torch.get_rng_state(), state[1])


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("fused", [False, True])
def test_watch(kind, fused):
    def measure(device):
        model, batches = task(device)
        optimizer = kind(model.parameters(), lr=1e-2, fused=fused)
        watch = plumb.Watch(model, optimizer, every=2, loss=[lambda batch=batch: loss(model, batch) for batch in batches],
                            examples=4)
        for batch in batches * 2:
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
        return watch.history

    here, there = on_both(measure)
    assert len(there) == len(here) == 4
    for values, expected in zip(there, here):
        assert values.keys() == expected.keys()
        for key, value in expected.items():
            close(values[key], value, 1e-5)


def test_mixed_precision_training_is_watched():
    model, batches = task("cuda", torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = plumb.Watch(model, optimizer, every=2, loss=lambda: loss(model, batches[0]))
    for batch in batches * 2:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16):
            one = loss(model.train(), batch)
        one.backward()
        optimizer.step()
    assert len(watch.history) == 4 and all(math.isfinite(value) for values in watch.history for value in values.values())


def test_diff():
    model, batches = task("cuda")
    assert not plumb.diff(model, task("cpu")[0], batches[0], loss)
    other = copy.deepcopy(model)
    other.body.layers[1].linear1.weight.data *= 1.1
    assert "layers.1" in str(plumb.diff(model, other, batches[0], loss))


def test_coordinate_check():
    def measure(device):
        _, batches = task(device)
        return plumb.coordinate_check(lambda width: Decoder(width).to(device), loss, batches, widths=[16, 32, 64],
                                      optimizer=lambda model: torch.optim.Adam(model.parameters(), lr=1e-3), seeds=2)

    here, there = on_both(measure)
    assert there.verdict == here.verdict
