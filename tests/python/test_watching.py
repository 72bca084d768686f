"""plumb.Watch: against dense Hessians and formulas, and without a trace in the run."""

import contextlib
import copy
import json
import math
import warnings

import pytest
import torch
from torch import nn

import plumb
from plumb.attention import attention_statistics


def task(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Dropout(0.2), nn.Linear(6, 2))
    return model, torch.randn(20, 4), torch.randn(20, 2)


def train(kind, watched, steps=7, **settings):
    model, x, y = task()
    optimizer = kind(model.parameters(), **settings)
    losses = [lambda half=half: nn.functional.mse_loss(model(x[half]), y[half]) for half in (slice(10), slice(10, 20))]
    watch = plumb.Watch(model, optimizer, every=3, loss=losses, examples=10) if watched else None
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


def test_noise_scale_is_that_of_the_gradients_variance():
    torch.manual_seed(0)
    model = nn.Linear(3, 1, bias=False).double()
    x, y = torch.randn(4, 5, 3).double() + 1, torch.randn(4, 5, 1).double()
    losses = [lambda a=a, b=b: 0.5 * (model(a) - b).square().mean() for a, b in zip(x, y)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watch = plumb.Watch(model, optimizer, loss=losses, examples=5)
    losses[0]().backward()
    optimizer.step()
    gradients = torch.stack([((a @ model.weight.T - b) * a).mean(0) for a, b in zip(x, y)]).detach()
    trace = 5 * gradients.var(0, correction=1).sum().item()
    square = gradients.mean(0).square().sum().item() - trace / 20
    assert square > 0
    assert watch.values["noise_trace"] == pytest.approx(trace, rel=1e-10)
    assert watch.values["square_gradient"] == pytest.approx(square, rel=1e-10)
    assert watch.values["noise_scale"] == pytest.approx(trace / square, rel=1e-10)
    hessian = torch.einsum("kbi,kbj->ij", x, x) / 20
    assert watch.values["sharpness"] == pytest.approx(torch.linalg.eigvalsh(hessian)[-1].item(), rel=1e-6)


def test_of_a_run_that_diverges_goes_on():
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = [lambda: model(torch.ones(1, 1)).square().sum()] * 2
    watch = plumb.Watch(model, optimizer, loss=losses)
    (losses[0]() * math.inf).backward()
    optimizer.step()
    assert math.isnan(watch.values["sharpness"]) and math.isnan(watch.values["noise_scale"])


def test_callback_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    logged = []

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 1)

        def forward(self, x=None, labels=None):
            return {"loss": nn.functional.mse_loss(self.body(x)[..., 0], labels)}

    def train(callbacks):
        torch.manual_seed(0)
        data = [{"x": torch.randn(3), "labels": torch.randn(())} for _ in range(16)]
        model = Model()
        arguments = transformers.TrainingArguments(
            str(tmp_path), per_device_train_batch_size=2, gradient_accumulation_steps=2, max_steps=4, report_to=[],
            use_cpu=True, disable_tqdm=True, save_strategy="no")
        trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=callbacks)
        trainer.train()
        return model, trainer

    x, y = torch.ones(4, 3), torch.ones(4)
    callback = plumb.transformers_callback(log=logged.append, every=2, loss=lambda model: model(x, y)["loss"])
    watched, trainer = train([callback])
    plain, _ = train([])
    assert all(torch.equal(a, b) for a, b in zip(watched.parameters(), plain.parameters()))
    history = [entry for entry in trainer.state.log_history if "plumb/sharpness" in entry]
    assert [entry["step"] for entry in history] == [1, 2, 4] == [values["plumb/step"] for values in logged]
    assert logged[0]["plumb/update_ratio/body"] == logged[0]["plumb/update_ratio"] > 0


def test_a_step_that_overflows_is_not_logged_again():
    """A GradScaler leaves it out, and the Trainer's step ends all the same."""
    transformers = pytest.importorskip("transformers")
    model, logged = nn.Linear(3, 1), []
    optimizer, state = torch.optim.SGD(model.parameters(), lr=0.1), transformers.TrainerState()
    callback = plumb.transformers_callback(log=logged.append)
    callback.on_train_begin(None, state, None, model=model, optimizer=optimizer)
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    for _ in range(2):
        callback.on_step_end(None, state, None)
    callback.on_train_end(None, state, None)
    assert len(logged) == len(state.log_history) == 1


def test_callback_of_lightning(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from lightning.pytorch.loggers import CSVLogger

    class Model(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 1)

        def training_step(self, batch, index):
            return self.body(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    callback = plumb.lightning_callback(every=2, loss=lambda model: model.body(torch.ones(2, 3)).square().mean())
    trainer = lightning.Trainer(
        accelerator="cpu", max_steps=4, callbacks=[callback], logger=CSVLogger(tmp_path), enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, accumulate_grad_batches=2, log_every_n_steps=1)
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(16, 3), batch_size=2))
    assert [values["step"] for values in callback.watch.history] == [1, 2, 4]
    # The mean of (w·1 + b)² has the curvature 2·(1 + 3) along (1, 1).
    assert callback.watch.values["sharpness"] == pytest.approx(8, rel=1e-5)
    header = next(tmp_path.rglob("metrics.csv")).read_text().split("\n")[0]
    assert "plumb/sharpness" in header.split(",")


def test_another_eigenvalue_may_become_the_largest():
    weights = nn.ParameterList([nn.Parameter(torch.ones(2000, dtype=torch.float64))])
    curvature = torch.linspace(0, 1, 2000, dtype=torch.float64)

    def loss():
        return 0.5 * (curvature * weights[0].square()).sum()

    optimizer = torch.optim.SGD(weights.parameters(), lr=1e-3)
    watch = plumb.Watch(weights, optimizer, every=1, loss=loss)
    for largest in (1.0, 3.0):
        curvature[7] = largest
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        assert watch.values["sharpness"] == pytest.approx(largest, abs=max(watch.values["sharpness_error"], 0.02))


def test_a_loss_without_second_derivative_is_said_once():
    model = nn.Linear(3, 1)
    x = torch.randn(5, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    watch = plumb.Watch(model, optimizer, every=1, loss=lambda: model(x).sum())  # linear in the parameters
    with pytest.warns(UserWarning, match="no sharpness") as said:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    assert len(said) == 1 and math.isnan(watch.values["sharpness"]) and watch.values["update_norm"] > 0


def raising(error):
    def loss(*_):
        raise error
    return loss


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory"), MemoryError(), KeyError("labels"), plumb.Error("mine")])
def test_a_measurement_that_fails_does_not_end_the_training(error):
    model, x = nn.Linear(3, 1), torch.randn(5, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch = plumb.Watch(model, optimizer, every=1, loss=[raising(error)] * 2)
    with pytest.warns(UserWarning, match=f"no sharpness: .*{error.args[0] if error.args else 'MemoryError'}") as said:
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert len(said) == 1 and model.training
    for values in watch.history:
        assert values["update_norm"] > 0 and values["adam_epsilon_share"] >= 0
        assert math.isnan(values["sharpness"]) and math.isnan(values["noise_scale"]) and "critical_rate" not in values
    assert [step for step, _ in watch.errors] == [1, 1, 1, 2, 2, 2] and watch.errors[0][1].startswith("no sharpness: ")


def test_an_optimizer_of_another_kind_does_not_end_its_training():
    """Which keeps no number of steps where Adam does."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    optimizer.register_step_post_hook(lambda *_: [state.pop("step") for state in optimizer.state.values()])
    watch = plumb.Watch(model, optimizer, every=1, loss=lambda: model(torch.ones(3)).square().sum())
    model(torch.ones(3)).sum().backward()
    with pytest.warns(UserWarning, match="AdamW does not keep the number of its steps where Adam does"):
        optimizer.step()
    assert watch.values["update_norm"] > 0 and math.isnan(watch.values["sharpness"]) and len(watch.errors) == 1


def test_a_copy_of_the_weights_that_fails_does_not_end_the_training(monkeypatch):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    watch = plumb.Watch(model, optimizer, every=1)
    model(torch.ones(3)).sum().backward()
    monkeypatch.setattr(torch.Tensor, "clone", raising(torch.OutOfMemoryError("no memory")))
    with pytest.warns(UserWarning, match="no norms: OutOfMemoryError: no memory"):
        optimizer.step()
    assert watch.new and watch.values == {"step": 1} and watch.errors[0][0] == 1


def test_a_step_within_a_step_is_one():
    class Wrapped(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    model = nn.Linear(3, 1)
    torch.optim.SGD(model.parameters(), lr=1e-2)  # from now on, PyTorch calls hooks within super().step(), too
    optimizer = Wrapped(model.parameters(), lr=1e-2)
    watch = plumb.Watch(model, optimizer, every=1)
    for _ in range(3):
        model(torch.ones(3)).sum().backward()
        optimizer.step()
    assert [(values["step"], values["update_norm"] > 0) for values in watch.history] == [(1, True), (2, True), (3, True)]


def test_an_interruption_ends_the_training():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    plumb.Watch(model, optimizer, every=1, loss=raising(KeyboardInterrupt()))
    model(torch.ones(3)).sum().backward()
    with pytest.raises(KeyboardInterrupt):
        optimizer.step()
    assert model.training


@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_statistics_are_those_of_the_weights(need_weights):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))

        def forward(self, x):
            hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
            for layer in self.layers:
                x = x + layer(x, x, x, attn_mask=hidden, need_weights=need_weights)[0]
            return x

    torch.manual_seed(0)
    model, x = Model(), torch.randn(3, 5, 8)
    weights = model.layers[0](x, x, x, attn_mask=torch.ones(5, 5, dtype=torch.bool).triu(1), average_attn_weights=False)[1]
    query, key, _ = nn.functional.linear(x, model.layers[0].in_proj_weight).chunk(3, -1)
    scores = torch.einsum("bihd,bjhd->bhij", query.view(3, 5, 2, 4), key.view(3, 5, 2, 4)) / 2
    expected = -(weights * weights.clamp_min(1e-30).log()).sum(-1)[..., 1:] / torch.arange(2, 6).log()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    watch = plumb.Watch(model, optimizer, loss=lambda: model(x).square().mean(), steps=2)
    with pytest.warns(UserWarning, match="no sharpness") if not need_weights else contextlib.nullcontext():
        model(x).square().mean().backward()
        optimizer.step()
    assert watch.values["attention_entropy/layers.0"] == pytest.approx(float(expected.mean().detach()), rel=1e-5)
    assert watch.values["attention_logit/layers.0"] == pytest.approx(float(scores.tril().abs().max().detach()), rel=1e-5)
    assert 0 < watch.values["attention_entropy"] < 1 and "attention_entropy/layers.1" in watch.values


def test_attention_statistics_of_grouped_heads_and_none_without_attention():
    class Grouped(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key = nn.Linear(8, 16), nn.Linear(8, 8)

        def forward(self, x):
            query, key = self.query(x).view(2, 6, 4, 4).transpose(1, 2), self.key(x).view(2, 6, 2, 4).transpose(1, 2)
            try:
                return nn.functional.scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)
            except TypeError:
                pytest.skip("PyTorch has grouped heads from 2.5 on")

    torch.manual_seed(0)
    model, x = Grouped(), torch.randn(2, 6, 8)
    found = attention_statistics(model, [lambda: model(x).sum()], lambda name: name)
    query, key = model.query(x).view(2, 6, 4, 4).transpose(1, 2), model.key(x).view(2, 6, 2, 4).transpose(1, 2)
    scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) / 2
    weights = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf).softmax(-1)
    expected = torch.special.entr(weights).sum(-1)[..., 1:] / torch.arange(2, 7).log()
    assert found["attention_entropy"] == pytest.approx(float(expected.mean().detach()), rel=1e-5)
    plain = nn.Linear(8, 8)
    assert attention_statistics(plain, [lambda: plain(x).sum()], lambda name: name) == {}


def norm_of_gradients(model):
    return math.sqrt(sum(float(p.grad.double().square().sum()) for p in model.parameters() if p.grad is not None))


def loop(model, optimizers, loss, steps=1, before=lambda: None):
    """The gradient norms as the steps begin."""
    norms = []
    for _ in range(steps):
        model.zero_grad()
        loss().backward()
        before()
        norms.append(norm_of_gradients(model))
        for optimizer in optimizers:
            optimizer.step()
    return norms


def small(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))
    x, y = torch.randn(20, 4), 10 * torch.randn(20, 2)
    return model, lambda: nn.functional.mse_loss(model(x), y)


class Simple(torch.optim.Optimizer):
    """θ ← θ − lr·g, with settings and state that other optimizers may have."""

    def __init__(self, parameters, state=(), **settings):
        super().__init__(parameters, settings)
        self.of_tensor = dict(state)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for tensor in group["params"]:
                self.state[tensor] = {name: make(tensor) for name, make in self.of_tensor.items()}
                tensor.sub_(tensor.grad, alpha=0.01)


class Lerping(Simple):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for tensor in group["params"]:
                tensor.grad.lerp_(tensor, 0.9)
                tensor.sub_(tensor.grad, alpha=0.01)


class Freeing(Simple):
    def step(self, closure=None):
        super().step()
        self.zero_grad()


class Scaling(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for tensor in group["params"]:
                tensor.grad.mul_(0.1)
        super().step()


GRADIENTS = {
    "overwritten": lambda p: Lerping(p), "freed": lambda p: Freeing(p), "scaled in a subclass": lambda p: Scaling(p, lr=0.01),
    "Nesterov, foreach": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, foreach=True),
    "weight decay, foreach": lambda p: torch.optim.SGD(p, lr=0.01, weight_decay=0.5, foreach=True),
    "fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
}


@pytest.mark.parametrize("kind", GRADIENTS)
def test_gradients_are_those_that_enter_the_step(kind):
    model, loss = small()
    torch.optim.SGD(model.parameters(), lr=0.1)  # whose hooks subclasses call, too
    optimizer = GRADIENTS[kind](model.parameters())
    watch = plumb.Watch(model, optimizer, every=1, loss=loss)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of optimizers whose critical rate is unknown
        norms = loop(model, [optimizer], loss, steps=3)
    assert [values["gradient_norm"] for values in watch.history] == pytest.approx(norms, rel=1e-6)
    assert watch.values["sharpness"] > 0 and watch.values["update_norm"] > 0


@pytest.mark.parametrize("fused", [False, True])
def test_gradients_of_a_scaled_loss(fused):
    model, loss = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=fused)
    watch, scaler = plumb.Watch(model, optimizer), torch.amp.GradScaler("cpu", init_scale=1024.0)
    expected = math.sqrt(sum(float(g.square().sum()) for g in torch.autograd.grad(loss(), list(model.parameters()))))
    scaler.scale(loss()).backward()
    scaler.step(optimizer)
    assert watch.values["gradient_norm"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.LBFGS])
def test_gradients_of_a_closure(kind, named):
    model, loss = small()
    optimizer = kind(model.parameters(), lr=0.01)
    watch = plumb.Watch(model, optimizer, every=1)
    norms = []

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        norms.append(norm_of_gradients(model))
        return value

    for _ in range(2):
        called = len(norms)
        optimizer.step(closure=closure) if named else optimizer.step(closure)
        assert watch.values["gradient_norm"] == pytest.approx(norms[called], rel=1e-6)


def test_norms_after_clipping_are_said_to_be_so():
    model, loss = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = plumb.Watch(model, optimizer, every=1)
    with pytest.warns(UserWarning, match="after any clipping") as said:
        loop(model, [optimizer], loss, 8, lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    assert len(said) == 1 and watch.values["gradient_norm"] == pytest.approx(1, rel=1e-5) and not watch.errors


def test_learning_rates_are_numbers():
    model, loss = small()
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.1))
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=10)
    watch = plumb.Watch(model, optimizer, every=1, loss=loss)
    for _ in range(4):
        loop(model, [optimizer], loss)
        schedule.step()
    assert [values["learning_rate"] for values in watch.history] == pytest.approx([0.1, 0.09, 0.08, 0.07])
    assert json.loads(json.dumps(watch.history)) == watch.history
    groups = [{"params": model[0].parameters(), "lr": 1e-4}, {"params": model[2].parameters(), "lr": 1e-2}]
    watch = plumb.Watch(model, optimizer := torch.optim.SGD(groups), loss=loss)
    loop(model, [optimizer], loss)
    assert watch.values["learning_rate"] == 1e-2
    assert watch.values["rate_share"] == pytest.approx(1e-2 * watch.values["sharpness"] / 2)


def halves(model):
    """Two optimizers, each of a half of the parameters."""
    muon = getattr(torch.optim, "Muon", None)
    matrices = [model[0].weight, model[2].weight]
    rest = [model[0].bias, model[2].bias]
    return [muon(matrices, lr=0.02) if muon else Simple(matrices), torch.optim.AdamW(rest, lr=3e-3)]


@pytest.mark.parametrize("turned", [False, True])
def test_several_optimizers(turned):
    model, loss = small()
    optimizers = halves(model)
    watch = plumb.Watch(model, optimizers[::-1] if turned else optimizers, every=2, loss=loss, by="(.*)")
    with pytest.warns(UserWarning, match="no critical rate.* Adam and (Muon|Simple)|(Muon|Simple) and Adam"):
        for step in range(1, 5):
            before = {name: p.detach().clone() for name, p in model.named_parameters()}
            norm = loop(model, optimizers, loss)[0]
            assert watch.new == (step in (1, 2, 4))
            if watch.new:
                assert watch.values["gradient_norm"] == pytest.approx(norm, rel=1e-6)
                for name, p in model.named_parameters():
                    update = float((p.detach() - before[name]).norm())
                    assert watch.values["update_norm/" + name] == pytest.approx(update, rel=1e-5)
    assert [values["step"] for values in watch.history] == [1, 2, 4]
    expected = plumb.spectrum(loss, model, steps=20, probes=1).max.value
    assert watch.values["sharpness"] == pytest.approx(expected, rel=0.05) and "critical_rate" not in watch.values


def test_only_parameters_of_the_optimizer_are_watched():
    model, loss = small()
    optimizer = halves(model)[1]
    watch = plumb.Watch(model, optimizer, by="(.*)")
    loop(model, [optimizer], loss)
    assert {key for key in watch.values if key.startswith("update_norm/")} == {"update_norm/0.bias", "update_norm/2.bias"}
    with pytest.raises(plumb.Error, match="object is no optimizer"):
        plumb.Watch(model, object())


def test_optimizers_of_which_one_steps_more_often():
    model, loss = small()
    optimizers = halves(model)
    watch = plumb.Watch(model, optimizers, every=1)
    loop(model, [optimizers[1]] * 3, loss)
    assert not watch.history
    loop(model, [optimizers[0]], loss)
    assert watch.new and watch.values["step"] == 1 and watch.values["update_norm/0"] > 0


OTHERS = {
    "step in the group": lambda p: Simple(p, {"exp_avg_sq": torch.ones_like}, lr=0.01, betas=(0.9, 0.99), eps=1e-8, step=1),
    "no eps": lambda p: Simple(p, {"exp_avg_sq": torch.ones_like, "step": lambda _: 1}, lr=0.01, betas=(0.9, 0.99)),
    "three betas": lambda p: Simple(p, {"exp_avg_sq": lambda t: t[..., 0], "step": lambda _: 1}, lr=0.01, betas=(0.9, 0.9, 0.9)),
    "no rate": lambda p: Simple(p), "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01), "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
}
if hasattr(torch.optim, "Adafactor"):  # from 2.5 on
    OTHERS["Adafactor"] = lambda p: torch.optim.Adafactor(p, lr=0.01)


@pytest.mark.parametrize("kind", OTHERS)
def test_optimizers_whose_critical_rate_is_unknown(kind):
    model, loss = small()
    optimizer = OTHERS[kind](model.parameters())
    watch = plumb.Watch(model, optimizer, every=1, loss=loss)
    with pytest.warns(UserWarning, match="no critical rate: Plumb knows that of SGD, Adam and AdamW alone") as said:
        loop(model, [optimizer], loss, 2)
    assert len(said) == 1 and watch.values["update_norm"] > 0 and "critical_rate" not in watch.values
    assert watch.values["sharpness"] == pytest.approx(plumb.spectrum(loss, model, steps=30, probes=1).max.value, rel=0.02)


def test_subclasses_that_lack_settings():
    class Old(torch.optim.SGD):
        step = Simple.step

    model, loss = small()
    optimizer = Old(model.parameters(), lr=0.01)
    optimizer.of_tensor = {}
    for group in optimizer.param_groups:
        del group["nesterov"], group["momentum"], group["dampening"], group["weight_decay"]
    watch = plumb.Watch(model, optimizer, loss=loss)
    loop(model, [optimizer], loss)
    assert watch.values["critical_rate"] == pytest.approx(2 / watch.values["sharpness"]) and not watch.errors


@pytest.mark.parametrize("settings", [{"momentum": 0.9, "dampening": 0.9}, {"weight_decay": 2.0}, {"momentum": 0.9, "nesterov": True},
                                      {"momentum": 0.5, "weight_decay": 1.0}, {"adam": True, "weight_decay": 0.5}])
def test_critical_rates_are_those_of_a_quadratic_loss(settings):
    """Beyond which the weights grow, and below which they do not."""
    settings = dict(settings)
    kind = torch.optim.AdamW if settings.pop("adam", False) else torch.optim.SGD
    if kind is torch.optim.AdamW:
        settings |= {"betas": (0.9, 0.99999), "eps": 1e6}  # P is constant

    def end(rate, steps):
        weight = nn.ParameterList([nn.Parameter(torch.tensor([1.0, 0.3], dtype=torch.float64))])
        optimizer = kind(weight.parameters(), lr=rate, **settings)
        watch = plumb.Watch(weight, optimizer, every=steps, loss=lambda: loss(weight))
        for _ in range(steps):
            optimizer.zero_grad()
            loss(weight).backward()
            optimizer.step()
        return watch.values, float(weight[0].detach().norm())

    def loss(weight):
        return 0.5 * scale * (torch.tensor([3.0, 1.0], dtype=torch.float64) * weight[0].square()).sum()

    scale = 1e6 if kind is torch.optim.AdamW else 1.0
    critical = end(1e-6, 400)[0]["critical_rate"]
    assert end(0.9 * critical, 400)[1] < 1e-3 and end(1.1 * critical, 400)[1] > 1e3


@pytest.mark.parametrize("steps", [1, 30])
def test_tokens_without_a_gradient_so_far_are_left_out(steps):
    """1/ε in place of their P would dominate."""
    shares = []
    for token in (3, 40):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(32, 10))
        tokens, labels = torch.randint(20, (16, 4)), torch.randint(10, (16,))
        watched = tokens.clone()
        watched[0, 0] = token
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        watch = plumb.Watch(model, optimizer, every=steps,
                            loss=lambda: nn.functional.cross_entropy(model(watched), labels))
        loop(model, [optimizer], lambda: nn.functional.cross_entropy(model(tokens), labels), steps)
        shares.append(watch.values["rate_share"])
        assert watch.values["adam_unseen_share"] == pytest.approx(
            8 * (50 - len(tokens.unique())) / sum(p.numel() for p in model.parameters()), abs=0.02)
    assert shares[1] == pytest.approx(shares[0], rel=0.3)


@pytest.mark.parametrize("momentum", [0.1, 0.01, None])
@pytest.mark.parametrize("frozen", [False, True])
def test_batch_norms_are_as_in_training(momentum, frozen):
    torch.manual_seed(0)
    model = nn.Sequential(*(layer for _ in range(3) for layer in (
        nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8, momentum=momentum), nn.ReLU(), nn.Dropout(0.5))), nn.Linear(8, 4))
    for module in model:
        module.training = not (frozen and isinstance(module, nn.BatchNorm1d))
    x, y = 3 * torch.randn(32, 8) + 1, torch.randint(4, (32,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    loss = [lambda half=half: nn.functional.cross_entropy(model(x[half]), y[half]) for half in (slice(16), slice(16, 32))]
    watch = plumb.Watch(model, optimizer, loss=loss, examples=16)
    loop(model, [optimizer], loss[0])
    buffers = [buffer.clone() for buffer in model.buffers()]
    function = copy.deepcopy(model)
    for module in function:
        module.training = isinstance(module, nn.BatchNorm1d) and not frozen
    losses = [lambda half=half: nn.functional.cross_entropy(function(x[half]), y[half]) for half in (slice(16), slice(16, 32))]
    expected = plumb.spectrum(losses, function, steps=40, probes=2).max.value
    assert watch.values["sharpness"] == pytest.approx(expected, rel=0.02) and math.isfinite(watch.values["noise_trace"])
    assert all(torch.equal(a, b) for a, b in zip(buffers, model.buffers())) and not watch.errors
    assert [module.training for module in model] == [not (frozen and isinstance(m, nn.BatchNorm1d)) for m in model]


@pytest.mark.parametrize("kind", ["AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"])
def test_schedule_free_optimizers(kind):
    schedulefree = pytest.importorskip("schedulefree")
    model, loss = small()
    optimizer = getattr(schedulefree, kind)(model.parameters(), lr=0.01)
    optimizer.train()
    watch = plumb.Watch(model, optimizer, every=1, loss=loss)
    with pytest.warns(UserWarning, match=f"no critical rate.*{kind}") as said:
        norms = loop(model, [optimizer], loss, 2)
    assert len(said) == 1 and [values["gradient_norm"] for values in watch.history] == pytest.approx(norms, rel=1e-6)


def test_a_run_that_is_resumed_counts_on(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 1)

        def forward(self, x=None, labels=None):
            return {"loss": nn.functional.mse_loss(self.body(x)[..., 0], labels)}

    def train(steps, resume):
        torch.manual_seed(0)
        arguments = transformers.TrainingArguments(str(tmp_path), per_device_train_batch_size=2, max_steps=steps, report_to=[],
                                                   use_cpu=True, disable_tqdm=True, save_steps=3)
        callback = plumb.transformers_callback(every=2)
        transformers.Trainer(Model(), arguments, train_dataset=[{"x": torch.randn(3), "labels": torch.randn(())} for _ in range(16)],
                             callbacks=[callback]).train(resume_from_checkpoint=resume)
        return [values["step"] for values in callback.watch.history]

    assert train(3, None) == [1, 2] and train(6, str(tmp_path / "checkpoint-3")) == [4, 6]
