"""What cannot be measured is said, with what to do."""

import subprocess
import sys

import pytest
import torch
from torch import nn

import plumb


def linear():
    return nn.Linear(2, 1), torch.randn(5, 2)


def expect(message, hint, loss, parameters, **options):
    with pytest.raises(plumb.Error) as raised:
        plumb.spectrum(loss, parameters, steps=3, **options)
    assert message in str(raised.value) and hint in str(raised.value)


def test_fused_attention():
    model, x = nn.TransformerEncoderLayer(8, 2, 8, dropout=0, batch_first=True), torch.randn(2, 3, 8)

    def loss():
        return model(x).square().mean()

    expect("cannot be differentiated twice", "sdpa_kernel(torch.nn.attention.SDPBackend.MATH)", loss, model)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        plumb.spectrum(loss, model, steps=3)


def test_scaled_dot_product_attention_in_outputs_and_products():
    projection, x = nn.Linear(8, 24), torch.randn(2, 3, 8)

    def outputs():
        return nn.functional.scaled_dot_product_attention(*projection(x)[:, None].chunk(3, -1))

    hint = r"sdpa_kernel\(torch.nn.attention.SDPBackend.MATH\)"
    with pytest.raises(plumb.Error, match=hint):
        plumb.hvp(lambda: outputs().square().mean(), projection, list(projection.parameters()))
    with pytest.raises(plumb.Error, match=hint):
        plumb.spectrum(lambda z: z.square().mean(), projection, outputs=outputs, steps=3)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_modules(backend):
    model, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), torch.randn(5, 2)
    compiled = torch.compile(model, backend=backend)
    try:
        compiled(x).sum().backward()
    except Exception as error:  # without a compiler, or by a PyTorch that does not support this Python
        pytest.skip(f"torch.compile: {error}")
    if hasattr(torch.compiler, "set_stance"):  # computed as if they were not compiled
        found, expected = (plumb.spectrum(lambda: one(x).square().mean(), one, steps=3) for one in (compiled, model))
        assert found.max.value == expected.max.value
        measured = plumb.probe(compiled, lambda model, x: model(x).square().mean(), [x])
        assert [row.module for row in measured.rows] == ["_orig_mod.0", "_orig_mod.1", "_orig_mod.2"]
        assert measured["_orig_mod.0"].output is not None
    else:
        expect("cannot be differentiated twice", "._orig_mod", lambda: compiled(x).square().mean(), compiled)
    plumb.spectrum(lambda: compiled._orig_mod(x).square().mean(), compiled._orig_mod, steps=3)


def test_reentrant_checkpoints():
    from torch.utils.checkpoint import checkpoint

    model, x = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), torch.randn(5, 2)

    def loss(reentrant):  # of the last layers alone, so that the first ones have second derivatives all the same
        return lambda: checkpoint(model[1:], model[0](x), use_reentrant=reentrant).square().mean()

    expect("cannot be differentiated twice", "use_reentrant=False", loss(True), model)
    expected = plumb.spectrum(lambda: model(x).square().mean(), model, steps=3).max.value
    assert plumb.spectrum(loss(False), model, steps=3).max.value == pytest.approx(expected, rel=1e-5)


def test_a_loss_that_calls_backward():
    model, x = linear()

    def loss():
        value = model(x).square().mean()
        value.backward()
        return value

    expect("cannot be differentiated twice", "without calling backward()", loss, model)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_modes_around_a_measurement_do_not_matter(mode):
    model, x = linear()
    expected = plumb.spectrum(lambda: model(x).square().mean(), model, steps=3).max.value
    with mode():
        assert plumb.spectrum(lambda: model(x).square().mean(), model, steps=3).max.value == expected


def test_functions_that_are_differentiable_once():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] ** 2 * gradient

    x = torch.ones(3, requires_grad=True)
    expect("cannot be differentiated twice", "@once_differentiable", lambda: Once.apply(x.sin()).sum(), [x])


def test_errors_of_a_backward_pass_are_passed_on():
    class Raising(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            raise LookupError("not here")

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(LookupError, match="not here"):
        plumb.spectrum(lambda: Raising.apply(x).sum(), [x])


def test_a_loss_that_is_no_finite_number():
    model, x = linear()
    expect("the loss is nan", "detect_anomaly", lambda: model(x).mean() * float("nan"), model)
    expect("shape (5, 1)", "mean", lambda: model(x), model)
    expect("of type float", "tensor", lambda: model(x).mean().item(), model)
    expect("no graph", "detach", lambda: model(x).mean().detach(), model)
    expect("is a tensor", "lambda: ", model(x).mean(), model)


def test_a_criterion_in_place_of_a_loss():
    model, x = linear()
    criterion, optimizer = nn.MSELoss(), torch.optim.SGD(model.parameters(), 0.1)
    expect("is a MSELoss alone", "lambda: criterion(model(x), y)", criterion, model)
    for use in (lambda: plumb.check(model, optimizer, criterion, [x]), lambda: plumb.probe(model, criterion, [x]),
                lambda: plumb.coordinate_check(lambda width: nn.Linear(2, width), criterion, [x], [4, 8])):
        with pytest.raises(plumb.Error, match="is a MSELoss alone\npass a function that computes it: lambda model, batch: "):
            use()


def test_derivatives_that_are_not_finite():
    x, y = torch.zeros(2, requires_grad=True), torch.ones(2, requires_grad=True)
    expect("gradient of the loss is not finite in x", "square root", lambda: x.norm(2).sqrt() + y.square().sum(),
           {"y": y, "x": x})
    pointed = {"y": y, "x": x}
    with pytest.raises(plumb.Error, match="product of the Hessian is not finite in x"):
        plumb.hvp(lambda: (x.abs() ** 1.5).sum() + y.square().sum(), pointed, torch.ones(4))
    expect("Lanczos step 1 is not finite", "overflow", lambda: (x.abs() ** 1.5).sum() + y.square().sum(), pointed)
    with pytest.raises(plumb.Error, match="vector has elements that are not finite"):
        plumb.hvp(lambda: y.square().sum(), [y], torch.full((2,), float("nan")))
    with pytest.raises(plumb.Error, match="has 3 elements, and the Hessian 2 rows"):
        plumb.hvp(lambda: y.square().sum(), [y], torch.ones(3))


def test_a_loss_that_changes():
    model, x = nn.Sequential(nn.Linear(2, 50), nn.Dropout(), nn.Linear(50, 1)), torch.randn(5, 2)
    expect("changes from call to call", "model.eval()", lambda: model(x).square().mean(), model)
    model.eval()
    plumb.spectrum(lambda: model(x).square().mean(), model, steps=3)


def test_parameters_that_cannot_be_measured():
    model, x = linear()

    def loss():
        return model(x).square().mean()

    expect("no parameters", "generator", loss, [])
    expect("of type str", "module", loss, "weight")
    with torch.inference_mode():
        made, _ = linear()
    expect("made in torch.inference_mode()", "outside", lambda: made(x).square().mean(), made)
    expect("does not depend on 1", "zero", loss, [model.weight, torch.ones(2, requires_grad=True)])
    expect("occurs twice", "", loss, [model.weight, model.weight])
    expect("bfloat16", "model.float()", loss, linear()[0].bfloat16())
    expect("float64", "one type", loss, [model.weight, torch.ones(2, requires_grad=True, dtype=torch.float64)])
    expect("linear", "", lambda: model(x).mean(), model)
    expect("no batches", "", lambda batch: loss(), model, batches=[])
    model.bias.requires_grad_(False)
    expect("no gradient is computed for bias", "requires_grad", loss, model)
    assert set(plumb.spectrum(loss, {n: p for n, p in model.named_parameters() if p.requires_grad}, by=".*")) == {"weight"}


def changed(model, change):
    with torch.no_grad():
        for tensor in model.parameters():
            change(tensor)


def assigned(model):
    model.load_state_dict({name: tensor.clone() for name, tensor in model.state_dict().items()}, assign=True)


def swapped(tensor):
    tensor.data.view(-1)[:2] = tensor.data.view(-1)[:2].flip(0)


@pytest.mark.parametrize("change", {
    "in place": lambda model: changed(model, lambda tensor: tensor.add_(1)),
    "through .data": lambda model: changed(model, lambda tensor: tensor.data.add_(1)),
    "one element": lambda model: changed(model, lambda tensor: tensor.data.view(-1)[-1:].mul_(1 + 1e-6)),
    "signs": lambda model: changed(model, lambda tensor: tensor.data.neg_()),
    "doubled": lambda model: changed(model, lambda tensor: tensor.data.mul_(2)),
    "two elements swapped": lambda model: changed(model, swapped),
    "by NumPy": lambda model: changed(model, lambda tensor: tensor.numpy().__iadd__(1)),
    "other memory": lambda model: changed(model, lambda tensor: setattr(tensor, "data", tensor.data.clone())),
    "from a vector": lambda model: nn.utils.vector_to_parameters(
        nn.utils.parameters_to_vector(model.parameters()).detach() + 1, model.parameters()),
    "other tensors": assigned,
    "another type": lambda model: model.double(),
}.values())
@pytest.mark.parametrize("width", [2, 300])
def test_parameters_that_change(width, change):
    model, x = nn.Sequential(nn.Linear(width, 300), nn.Tanh(), nn.Linear(300, 2)), torch.randn(3, width)
    hessian = plumb.Hessian(lambda: model(x).square().mean(), model)
    before = hessian @ torch.ones(hessian.shape[0])
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    assert torch.equal(hessian @ torch.ones(hessian.shape[0]), before)  # without a gradient, the step changed nothing
    change(model)
    for use in (lambda: hessian @ torch.ones(hessian.shape[0]), hessian.spectrum):
        with pytest.raises(plumb.Error, match="make a new one"):
            use()


def test_a_loss_that_has_changed_since():
    """What the loss is computed with besides the parameters: here, tensors that have taken their place in the model."""
    model, x = linear()
    hessian = plumb.Hessian(lambda: model(x).square().mean(), list(model.parameters()))
    model.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()}, assign=True)
    with pytest.raises(plumb.Error, match="the loss changes from call to call"):
        hessian.spectrum()


def test_invalid_options():
    model, x = linear()
    expect("0 probes", "at least 1", lambda: model(x).square().mean(), model, probes=0)
    expect("blocks", "alone", lambda: model(x).square().mean(), model, by=".*", dense=True)


def test_a_loss_of_other_arguments():
    model, x = linear()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    expect("cannot be called with no arguments: missing a required argument", "lambda: ", lambda model, x: model(x), model)
    expect("cannot be called with a batch alone", "lambda batch: ", lambda model, x: model(x), model, batches=[x])
    for wrong in ("loss", 3):
        expect("cannot be called with no arguments", "lambda: ", wrong, model)
    uses = (lambda loss: plumb.check(model, optimizer, loss, [x]), lambda loss: plumb.probe(model, loss, [x]),
            lambda loss: plumb.coordinate_check(lambda width: nn.Linear(2, width), loss, [x], [4, 8]),
            lambda loss: plumb.preflight(model=model, optimizer=optimizer, loss=loss, loader=[x]),
            lambda loss: plumb.diff(model, model, x, loss))
    for use in uses:
        with pytest.raises(plumb.Error, match="with model and batch: too many positional arguments\npass .* lambda model, batch: "):
            use(lambda batch: model(batch).mean())
    for loss in (model(x).mean(), nn.MSELoss(), [lambda x: model(x).mean()]):
        with pytest.raises(plumb.Error, match="pass a function that computes it: lambda: "):
            plumb.Watch(model, optimizer, loss=loss)


@pytest.mark.parametrize("wrong", [lambda model, x: model(x), lambda model, x: (model(x), model(x).mean()),
                                   lambda model, x: model(x).mean().detach()])
def test_a_loss_of_model_and_batch_that_is_no_number(wrong):
    model, x = linear()
    for use in (lambda: plumb.probe(model, wrong, [x]), lambda: plumb.diff(model, model, x, wrong),
                lambda: plumb.coordinate_check(lambda width: nn.Linear(2, width), wrong, [x], [4, 8])):
        with pytest.raises(plumb.Error, match="no single number with a graph\nreturn a mean"):
            use()


def test_a_single_batch_in_place_of_several():
    model, x = linear()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def loss(model, batch):
        return model(batch[0]).square().mean()

    for batch in (x, {"x": x}, (x, torch.zeros(5, dtype=torch.int64))):
        for use in (lambda: plumb.check(model, optimizer, loss, batch), lambda: plumb.probe(model, loss, batch),
                    lambda: plumb.coordinate_check(lambda width: nn.Linear(2, width), loss, batch, [4, 8]),
                    lambda: plumb.spectrum(lambda batch: loss(model, batch), model, batches=batch),
                    lambda: plumb.GaussNewton(lambda z, _: z.square().mean(), model, outputs=lambda b: model(b[0]), batches=batch)):
            with pytest.raises(plumb.Error, match=r"a single batch\npass a list, \[batch\]"):
                use()


def test_vectors_of_another_form():
    model, x = linear()
    hessian = plumb.Hessian(lambda: model(x).square().mean(), model)
    pieces = [torch.ones(1, 2), torch.ones(1)]
    for vector in (torch.ones(3).numpy(), pieces[:1], [*pieces, torch.ones(1)]):
        with pytest.raises(plumb.Error, match="names and shapes of the parameters\npass a tensor of 3 elements"):
            hessian @ vector
    assert [piece.shape for piece in hessian @ pieces] == [(1, 2), (1,)]


@pytest.mark.parametrize("program", ["import plumb, torch", "import torch, plumb"])
def test_either_may_be_imported_first(program):
    product = "; x = torch.ones(2, requires_grad=True); print(plumb.hvp(lambda: (x ** 3).sum(), [x], torch.ones(2)).tolist())"
    done = subprocess.run([sys.executable, "-c", program + product], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[6.0, 6.0]\n", 0), done.stderr
