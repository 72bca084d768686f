"""plumb.probe: against derivatives of PyTorch, and of formulas."""

import math

import pytest
import torch
from torch import nn

import plumb


def loss(model, batch):
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def test_agrees_with_autograd():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    batch = torch.randn(7, 5).double(), torch.randn(7, 3).double()
    hidden = model[0](batch[0]).detach().requires_grad_()
    active = torch.tanh(hidden)
    active.retain_grad()
    output = model[2](active)
    output.retain_grad()
    nn.functional.mse_loss(output, batch[1]).backward()
    model.zero_grad()
    found = plumb.probe(model, loss, [batch])
    assert [row.module for row in found.rows] == ["0", "1", "2"]
    assert float(found["1"].output) == pytest.approx(active.detach().square().mean().sqrt().item(), rel=1e-12)
    assert float(found["1"].gradient) == pytest.approx(float(active.grad.norm()), rel=1e-12)
    assert float(found["2"].backward_gain) == pytest.approx(float(active.grad.norm() / output.grad.norm()), rel=1e-12)
    assert found["0"].backward_gain is None  # nothing is to be learned from its input's gradient
    own = math.hypot(torch.einsum("bi,bj->ij", output.grad, active).norm().item(), output.grad.sum(0).norm().item())
    assert float(found["2"].parameter_gradient) == pytest.approx(own, rel=1e-12)
    assert found["1"].parameter_gradient is None and found["1"].output.error is None


class Residual(nn.Module):
    """x + 3·x: what flows back beside the module must not count as its gain."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4, bias=False)
        self.inner.weight.data = 3 * torch.eye(4)
        self.first = nn.Linear(4, 4)
        self.never = nn.Linear(2, 2)

    def forward(self, x):
        x = self.first(x)
        return x + self.inner(x)


def test_gain_is_through_the_module_alone():
    found = plumb.probe(Residual(), lambda model, x: model(x).square().mean(), [torch.randn(5, 4)])
    assert float(found["inner"].backward_gain) == pytest.approx(3, rel=1e-6)
    assert found.notes == ["no gradient reaches never.bias, never.weight"]


def test_intervals_over_initializations():
    model = nn.Sequential(nn.Linear(30, 20), nn.Linear(20, 1))
    batch = torch.randn(50, 30), torch.zeros(50, 1)
    found = plumb.probe(model, loss, [batch, batch], seeds=4)
    values = []
    for seed in range(4):
        torch.manual_seed(seed)
        for module in model:
            module.reset_parameters()
        values.append(model[0](batch[0]).detach().double().square().mean().sqrt().item())
    mean = sum(values) / 4
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / 3)
    assert float(found["0"].output) == pytest.approx(mean, rel=1e-6)
    assert found["0"].output.error == pytest.approx(3.182446305 * spread / 2, rel=1e-6)  # t of 3 degrees, 97.5%
    assert "4 initializations" in repr(found)


def test_leaves_the_model_as_it_was():
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.ReLU(inplace=True), nn.Linear(4, 3))
    model[4].weight.grad = torch.ones(3, 4)
    batch = torch.randn(7, 5), torch.randn(7, 3)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    plumb.probe(model, loss, [batch], seeds=2)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state()) and model.training
    assert torch.equal(model[4].weight.grad, torch.ones(3, 4))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_errors_and_notes():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(plumb.Error, match="nothing to measure"):
        plumb.probe(model, loss, [])
    with pytest.raises(plumb.Error, match="no single number"):
        plumb.probe(model, lambda m, x: m(x), [torch.randn(3, 2)])
    with pytest.raises(plumb.Error, match="reset_parameters"):
        plumb.probe(nn.ReLU(), loss, [torch.randn(3, 2)], seeds=2)
    model[0].weight.data[:] = math.nan
    assert "not finite" in plumb.probe(model, lambda m, x: m(x).sum(), [torch.randn(3, 2)]).notes[0]


def test_of_transformers():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=19, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    model = transformers.GPT2LMHeadModel(config)
    tokens = torch.arange(24).remainder(19).reshape(2, 12)
    found = plumb.probe(model, lambda m, x: m(input_ids=x, labels=x).loss, [tokens])
    assert found["transformer.h.1.mlp.c_proj"].backward_gain is not None and not found.notes
    frame = pytest.importorskip("pandas") and found.to_pandas()
    assert list(frame["module"]) == [row.module for row in found.rows]


def test_initializes_every_parameter_or_says_which_not():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(vocab_size=100, n_positions=8, n_embd=64, n_layer=1, n_head=2, initializer_range=0.3,
                                     bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    held = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    seen = []

    def loss(m, x):
        seen.append({name: tensor.detach().clone() for name, tensor in m.named_parameters()})
        return m(input_ids=x, labels=x).loss

    plumb.probe(model, loss, [torch.arange(8)[None]], seeds=2)
    matrices = [name for name in seen[0] if seen[0][name].dim() == 2]
    assert "transformer.h.0.mlp.c_fc.weight" in matrices  # of a module without reset_parameters()
    for name in matrices:
        assert not torch.equal(seen[0][name], seen[1][name]) and not torch.equal(seen[0][name], held[name]), name
    assert seen[0]["transformer.wte.weight"].std().item() == pytest.approx(0.3, rel=0.05)
    assert all(torch.equal(held[name], tensor) for name, tensor in model.state_dict().items())

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.inner = nn.Parameter(torch.ones(2)), nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x + self.token)

    with pytest.raises(plumb.Error, match=r"no reset_parameters\(\) initializes token"):
        plumb.probe(Own(), lambda m, x: m(x).sum(), [torch.ones(1, 2)], seeds=2)


def test_chosen_modules():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    x = torch.randn(2, 3, 8)
    found = plumb.probe(model, lambda m, x: m(x).pow(3).mean(), [x], modules=r"layers\.\d+$")
    assert [row.module for row in found.rows] == ["layers.0", "layers.1"]
    first = model.layers[0](x).detach().requires_grad_()
    last = model.layers[1](first)
    last.retain_grad()
    last.pow(3).mean().backward()
    assert float(found["layers.1"].backward_gain) == pytest.approx(float(first.grad.norm() / last.grad.norm()), rel=1e-5)
    own = math.sqrt(sum(float(p.grad.square().sum()) for p in model.layers[1].parameters()))
    assert float(found["layers.1"].parameter_gradient) == pytest.approx(own, rel=1e-5)
    plumb.probe(model, lambda m, x: m(x).pow(3).mean(), [x], seeds=2)  # parameters of nn.MultiheadAttention too
    with pytest.raises(plumb.Error, match="no name of a module matches"):
        plumb.probe(model, lambda m, x: m(x).sum(), [x], modules="nothing")


def test_restores_what_a_pass_changes_also_after_an_error():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.register_buffer("calls", torch.zeros(()), persistent=False)

        def forward(self, x):
            self.calls = self.calls + 1
            return self.inner(x)

    model, x = Counting(), torch.ones(1, 2)
    held, weight = model.calls, model.inner.weight
    value = model(x).sum()  # a graph that must stay usable
    held = model.calls

    def loss(m, x):
        m.eval()
        m(x)
        raise ValueError

    with pytest.raises(ValueError):
        plumb.probe(model, loss, [x], seeds=2)
    assert model.calls is held and held.item() == 1 and model.inner.weight is weight and model.training
    plumb.probe(model, lambda m, x: m(x).sum(), [x])
    value.backward()


class Attends(nn.Module):
    """A dict, and self-attention, whose input is query, key and value."""

    def __init__(self):
        super().__init__()
        self.first, self.attention = nn.Linear(4, 4), nn.MultiheadAttention(4, 2, batch_first=True)
        self.named = Named()

    def forward(self, x):
        x = self.first(x)
        return self.named(x + self.attention(x, x, x, need_weights=False)[0])["found"]


class Named(nn.Module):
    def forward(self, x):
        return {"count": torch.tensor(3), "found": 2 * x}


def test_modules_that_are_no_leaves_and_dicts():
    torch.manual_seed(0)
    model, x, y = Attends().double(), torch.randn(2, 3, 4).double(), torch.randn(2, 3, 4).double()
    found = plumb.probe(model, loss, [(x, y)])
    assert [row.module for row in found.rows] == ["first", "attention", "named"]
    hidden = model.first(x).detach().requires_grad_()
    attended = model.attention(hidden, hidden, hidden, need_weights=False)[0]
    passed = torch.autograd.grad(nn.functional.mse_loss(2 * (hidden + attended), y), attended, retain_graph=True)[0]
    through = torch.autograd.grad(attended, hidden, passed)[0]
    row = found["attention"]
    assert float(row.gradient) == pytest.approx(float(passed.norm()), rel=1e-12)
    assert float(row.backward_gain) == pytest.approx(float(through.norm() / passed.norm()), rel=1e-12)
    assert float(row.output) == pytest.approx(attended.detach().square().mean().sqrt().item(), rel=1e-12)
    assert row.parameter_gradient is not None and found["named"].kind == "Named"
    assert float(found["named"].backward_gain) == pytest.approx(2, rel=1e-12)
    assert float(found["named"].output) == pytest.approx(2 * (hidden + attended).detach().square().mean().sqrt().item())


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.again = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.again(torch.cat([self.again(self.first(x)), x.flip(0)]))  # of 4 rows, then of 8


def test_a_module_that_is_called_twice():
    torch.manual_seed(0)
    model, x = Twice().double(), torch.randn(4, 3).double()
    found = plumb.probe(model, lambda model, x: model(x).square().sum(), [x])["again"]
    read = model.first(x).detach().requires_grad_()
    one = model.again(read)
    inner = torch.cat([one, x.flip(0)])
    other = model.again(inner)
    of_other = 2 * other.detach()
    of_one, into_other = torch.autograd.grad(other, [one, inner], of_other)
    into_one = torch.autograd.grad(model.again(read), read, of_one)[0]
    elements = torch.cat([one.detach(), other.detach()])
    assert float(found.output) == pytest.approx(elements.square().mean().sqrt().item(), rel=1e-12)
    outside = math.hypot(float(of_one.norm()), float(of_other.norm()))
    assert float(found.gradient) == pytest.approx(outside, rel=1e-12)
    # Of the input of the second call, the first rows alone have a graph, but the tensor is one.
    inside = math.hypot(float(into_one.norm()), float(into_other.norm()))
    assert float(found.backward_gain) == pytest.approx(inside / outside, rel=1e-12)


class InPlace(nn.Module):
    """The input of `act` is read again after it has changed."""

    def __init__(self, inplace):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(4, 4), nn.LeakyReLU(0.2, inplace=inplace), nn.Linear(4, 4)
        self.inplace = inplace

    def forward(self, x):
        x = self.first(x)
        y = self.act(x)
        assert not self.inplace or y is x
        return self.last(y) + (x if self.inplace else y)


def test_modules_that_work_in_place():
    torch.manual_seed(0)
    model, plain = InPlace(True).double(), InPlace(False).double()
    plain.load_state_dict(model.state_dict())
    batches = [(torch.randn(5, 4).double(), torch.randn(5, 4).double()) for _ in range(2)]
    found, expected = plumb.probe(model, loss, batches), plumb.probe(plain, loss, batches)
    assert float(found.loss) == float(expected.loss)
    for one, other in zip(found.rows, expected.rows, strict=True):
        for name in ("output", "gradient", "parameter_gradient", "backward_gain"):
            values = getattr(one, name), getattr(other, name)
            assert values == (None, None) or float(values[0]) == pytest.approx(float(values[1]), rel=1e-12), (one.module, name)
    assert found["act"].backward_gain is not None


class Small(nn.Module):
    """Initialized as in nanoGPT: `_init_weights` on each module, some weights once more, and a norm of its own."""

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(32))

        def forward(self, x):
            return nn.functional.layer_norm(x, (32,), self.weight)

    def __init__(self, again=1.0):
        super().__init__()
        self.embed, self.norm, self.head = nn.Embedding(20, 32), self.Norm(), nn.Linear(32, 20)
        self.apply(self._init_weights)
        self.head.weight.data.mul_(again)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)

    def forward(self, tokens):
        return self.head(self.norm(self.embed(tokens)))


def of_tokens(model, tokens):
    return nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())


def test_the_authors_initialization_is_used():
    tokens = torch.arange(20)[None]
    found = plumb.probe(Small(), of_tokens, [tokens], seeds=3)
    assert float(found["embed"].output) == pytest.approx(0.02, rel=0.1)
    again = plumb.probe(Small(0.1), of_tokens, [tokens], seeds=2, reset=lambda model, seed: model.head.weight.data.mul_(1))
    assert again.seeds == 2


def scaled(model, name, factor):
    dict(model.named_parameters())[name].data.mul_(factor)
    return model


@pytest.mark.parametrize("make, name", [
    (lambda: Small(0.1), "head.weight"),
    (lambda: nn.Sequential(nn.Embedding(20, 32), nn.Linear(32, 20)).apply(
        lambda module: nn.init.normal_(module.weight, std=0.02) if hasattr(module, "weight") else None), "0.weight"),
    (lambda: scaled(nn.Sequential(nn.Embedding(20, 32), nn.Linear(32, 20)), "1.weight", 3.0), "1.weight"),
    (lambda: scaled(nn.Sequential(nn.Embedding(20, 32), nn.Linear(32, 20)), "1.bias", 0.0), "1.bias")])
def test_another_initialization_than_the_models_is_refused(make, name):
    model = make()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    with pytest.raises(plumb.Error, match=f"own initialization gives {name} .*otherwise, or has been trained\npass reset="):
        plumb.probe(model, of_tokens, [torch.arange(20)[None]], seeds=2)
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())


class Gated(nn.Module):
    """Has a module that returns no numbers of floating point."""

    class Sign(nn.Module):
        def forward(self, x):
            return x > 0

    def __init__(self):
        super().__init__()
        self.first, self.sign = nn.Linear(2, 3), self.Sign()

    def forward(self, x):
        return self.first(x) * self.sign(x[:, :1])


def test_what_returns_no_numbers_has_no_output():
    found = plumb.probe(Gated(), lambda model, x: model(x).square().mean(), [torch.randn(5, 2)] * 2)
    assert [row.module for row in found.rows] == ["first", "sign"]
    assert found["sign"].output is None and found["first"].output is not None and found.notes == []


def test_a_lazy_module_is_to_be_called_first():
    with pytest.raises(plumb.Error, match="weight is not initialized yet\ncall the model once"):
        plumb.probe(nn.LazyLinear(3), lambda model, x: model(x).mean(), [torch.randn(5, 2)])
