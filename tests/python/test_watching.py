"""plumb.Watch: against dense Hessians and formulas, and without a trace in the run."""

import contextlib
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
    with pytest.warns(UserWarning, match="no statistics of the optimizer: KeyError: 'step'"):
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
            return nn.functional.scaled_dot_product_attention(query, key, key, is_causal=True, enable_gqa=True)

    torch.manual_seed(0)
    model, x = Grouped(), torch.randn(2, 6, 8)
    found = plumb.attention.attention_statistics(model, [lambda: model(x).sum()], lambda name: name)
    query, key = model.query(x).view(2, 6, 4, 4).transpose(1, 2), model.key(x).view(2, 6, 2, 4).transpose(1, 2)
    scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) / 2
    weights = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -math.inf).softmax(-1)
    expected = torch.special.entr(weights).sum(-1)[..., 1:] / torch.arange(2, 7).log()
    assert found["attention_entropy"] == pytest.approx(float(expected.mean().detach()), rel=1e-5)
    plain = nn.Linear(8, 8)
    assert plumb.attention.attention_statistics(plain, [lambda: plain(x).sum()], lambda name: name) == {}
