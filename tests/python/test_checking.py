"""plumb.check: stable rates that are known exactly, each verdict, and without a trace in the run."""

import copy
import math
import random
import threading

import numpy as np
import pytest
import torch
from torch import nn

import plumb
from conftest import same
from plumb import _plumb
from plumb.checking import _momentum_gain, _step_length

CURVATURES = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64)


class Quadratic(nn.Module):
    """½ Σ λᵢ wᵢ²."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, -2.0, 0.5]], dtype=torch.float64))

    def forward(self, scale):
        return 0.5 * scale * (CURVATURES * self.weight.square()).sum()


def quadratic(rate, momentum=0.0, **options):
    model = Quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
    return plumb.check(model, optimizer, lambda model, batch: model(batch), [1.0], budget=8000, **options)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("rate", [0.01, 0.3, 20.0])
def test_gradient_descent_on_a_quadratic_loss(momentum, rate):
    """Polyak 1964: it converges below (2 + 2μ)/λ, and diverges above."""
    largest = (2 + 2 * momentum) / 4
    found = quadratic(rate, momentum)
    stable = found.largest_stable_rate
    assert stable.low < largest < stable.high and stable.high < 2.01 * stable.low
    assert float(stable) == pytest.approx(largest, rel=0.3)
    for trial in found.trials:
        assert (trial.outcome == "fails") == (trial.learning_rate > largest), (trial, largest)
    assert found.verdict == ("trains" if rate < largest else "other_rate") and bool(found) == (rate < largest)
    assert found.exit_status == (0 if rate < largest else 3)
    good = float(stable) ** 0.85 / 2**1.25  # docs/check.md
    assert found.recommended.learning_rate == pytest.approx(rate if abs(math.log2(good / rate)) <= 0.5 else good)
    # The first step's critical rate: 2 gᵀg/gᵀHg.
    gradient = CURVATURES * Quadratic().weight.detach()[0]
    expected = 2 * gradient.square().sum() / (CURVATURES * gradient.square()).sum()
    assert found.critical_rate == pytest.approx(expected.item(), rel=0.05)
    assert found.first_loss == pytest.approx(0.5 * (0.5 + 4 + 1)) and found.planned_steps is None


def test_what_the_length_of_steps_follows():
    parameters = [nn.Parameter(torch.ones(2, 2))]
    sgd, adamw = torch.optim.SGD(parameters, lr=0.1), torch.optim.AdamW(parameters)
    assert _step_length([sgd]) is _plumb.StepLength.gradient
    assert _step_length([adamw]) is _step_length([sgd, adamw]) is _plumb.StepLength.sign

    if hasattr(torch.optim, "Adafactor"):  # from 2.5 on
        assert _step_length([torch.optim.Adafactor(parameters)]) is _plumb.StepLength.weights


def test_the_unit_of_the_loss_does_not_matter():
    rates = []
    for scale in (1e-6, 1.0, 1e6):
        model = Quadratic()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1 / scale)
        rates.append(float(plumb.check(model, optimizer, lambda m, b: m(b) - 3 * scale, [scale]).largest_stable_rate) * scale)
    assert rates == pytest.approx([rates[0]] * 3, rel=0.02)


def transformer(rate, optimizer=torch.optim.AdamW, **settings):
    """Says which token stood before; 16 kinds, each as frequent as any other."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    model = nn.ModuleDict({"embed": nn.Embedding(16, 16), "body": nn.TransformerEncoder(layer, 2), "head": nn.Linear(16, 16)})
    place = nn.Parameter(torch.randn(8, 16))
    model.register_parameter("place", place)
    batches = [torch.randint(16, (16, 8)) for _ in range(20)]
    return model, optimizer(model.parameters(), lr=rate, **settings), batches


def loss_of(model, tokens):
    hidden = model["body"](model["embed"](tokens) + model.place)
    return nn.functional.cross_entropy(model["head"](hidden[:, 1:]).flatten(0, 1), tokens[:, :-1].flatten())


@pytest.mark.parametrize("reference", [None, math.log(16)])
def test_a_transformer(reference):
    model, optimizer, batches = transformer(1.0)
    absurd = plumb.check(model, optimizer, loss_of, batches, steps=2000, budget=600, reference_loss=reference)
    assert absurd.verdict == "other_rate", absurd
    assert 1e-4 < absurd.recommended.learning_rate < 0.1 and absurd.planned_seconds > 0
    assert any(reason.raised and reason.alarm == "updates" for reason in absurd.reasons)
    model, optimizer, batches = transformer(3e-3)
    sane = plumb.check(model, optimizer, loss_of, batches, steps=2000, budget=600, reference_loss=reference)
    assert sane.verdict == "trains" and sane.cost.gradients <= 600, sane
    assert not any(reason.raised for reason in sane.reasons), sane
    # What the answer promises: 300 steps of the run itself.
    for rate, learns in ((absurd.recommended.learning_rate, True), (1.0, False)):
        model, optimizer, batches = transformer(rate)
        for step in range(300):
            optimizer.zero_grad()
            loss = loss_of(model, batches[step % 20])
            loss.backward()
            optimizer.step()
        assert (loss.item() < math.log(16) - 0.5) == learns, (rate, loss.item())


def test_a_small_budget_says_what_is_needed():
    found = quadratic(0.1)
    assert found.verdict == "trains"
    model = Quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = plumb.check(model, optimizer, lambda m, b: m(b), [1.0], budget=30)
    assert found.verdict == "unknown" and found.exit_status == 4 and not found.trials
    assert "give at least 100 gradients" in found.answer and found.largest_stable_rate is None  # measurements and 80 steps
    again = plumb.check(model, optimizer, lambda m, b: m(b), [1.0], budget=100)
    assert len(again.trials) == 1
    assert plumb.check(model, optimizer, lambda m, b: m(b), [1.0], steps=4000, budget="5%").cost.gradients <= 200
    assert plumb.check(model, optimizer, lambda m, b: m(b), [1.0], budget="0.0001s").verdict == "unknown"


def test_a_warm_up_is_recommended_where_it_suffices():
    """A step of gradient descent at w = 3 is too large above 2/181, but the curvature at w = 0 is 1."""

    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([3.0], dtype=torch.float64))

        def forward(self, batch):
            return (0.5 * self.weight.square() + 5 * self.weight**4).sum()

    model = Steep()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
    found = plumb.check(model, optimizer, lambda m, b: m(b), [0], budget=1500)
    assert found.verdict == "needs_warm_up" and found.shortest_warm_up in (50, 100), found
    assert found.recommended.warm_up == 2 * found.shortest_warm_up and found.recommended.learning_rate == 0.03
    warm = plumb.check(model, optimizer, lambda m, b: m(b), [0], budget=4000, warm_up=100)
    assert warm.verdict == "trains" and warm.tried_warm_up == 100 and "without warm-up" in str(warm), warm
    assert float(warm.largest_stable_rate) > 2 * float(warm.largest_stable_rate_without_warm_up)


def test_what_cannot_train():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    broken = plumb.check(model, optimizer, lambda m, x: m(x).sum() * math.nan, [torch.ones(2, 3)])
    assert broken.verdict == "cannot" and "the loss is nan" in broken.answer and broken.exit_status == 3
    for tensor in model.parameters():
        tensor.requires_grad_(False)
    frozen = plumb.check(model, optimizer, lambda m, x: m(x).sum(), [torch.ones(2, 3)])
    assert frozen.verdict == "cannot" and "frozen" in frozen.answer and not frozen.trials
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    detached = plumb.check(model, optimizer, lambda m, x: m(x.requires_grad_()).detach().sum() + x.sum(), [torch.ones(2, 3)])
    assert detached.verdict == "cannot" and "no gradient" in detached.answer


def reason(found, alarm):
    return next(one for one in found.reasons if one.alarm == alarm)


def test_reasons():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), nn.Linear(5, 5))  # the last is not used
    model[0].bias.requires_grad_(False)
    batches = [(torch.randn(16, 3), torch.randint(2, (16,))) for _ in range(6)]

    def loss(model, batch):
        return nn.functional.cross_entropy(model[2](model[1](model[0](batch[0]))), batch[1])

    def checked(optimizer, **options):
        return plumb.check(model, optimizer, loss, batches, budget=60, **options)

    found = checked(torch.optim.Adam(model.parameters(), lr=1e-3), reference_loss=math.log(2))
    unused = reason(found, "gradients")
    assert unused.raised and unused.value == 2 and unused.place == "3.weight" and "2 of 5" in unused.text
    assert reason(found, "frozen").value == pytest.approx(1 / 6) and reason(found, "frozen").place == "0.bias"
    assert not reason(found, "epsilon").raised and not reason(found, "initial_loss").raised
    assert found.reasons[0] is unused and str(found).split("\n")[:2] == [found.checked, found.answer] and "! 2 of 5" in str(found)
    assert found.checked.startswith("Sequential, ") and "Adam, batches of 16 × 3" in found.checked
    # Adam's first step is the rate in each element.
    size = 1e-3 * math.sqrt(16) / model[2].weight.detach().norm().item()
    assert reason(found, "updates").value == pytest.approx(size, rel=1e-3) and reason(found, "updates").place == "2.weight"
    found = checked(torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e3))
    assert reason(found, "epsilon").raised and reason(found, "epsilon").value == 1
    labels = torch.cat([labels for _, labels in batches]).double()
    share = labels.mean().item()
    entropy = -share * math.log(share) - (1 - share) * math.log(1 - share)
    assert found.reference_loss == pytest.approx(entropy + 1 / (2 * 96))  # Miller and Madow's correction
    large = copy.deepcopy(model)
    with torch.no_grad():
        large[2].weight.mul_(1e3)
    found = plumb.check(large, torch.optim.Adam(large.parameters(), lr=1e-3), lambda model, batch: nn.functional.cross_entropy(
        model[2](model[1](model[0](batch[0]))), batch[1]), batches, budget=60)
    assert reason(found, "initial_loss").raised
    found = checked(torch.optim.SGD(model.parameters(), lr=1e-9), steps=100)
    assert [one.raised for one in found.reasons if one.alarm == "updates"] == [True, False]  # raised ones first


class Decoder(nn.Module):
    """Pre-LN layers of attention alone."""

    def __init__(self, causal=True, final_norm=True, init=0.02):
        super().__init__()
        self.embedding = nn.Embedding(30, 16)
        self.norms = nn.ModuleList(nn.LayerNorm(16) for _ in range(3))
        self.last = nn.LayerNorm(16) if final_norm else nn.Identity()
        self.head, self.causal = nn.Linear(16, 30, bias=False), causal
        for matrix in (self.embedding.weight, self.head.weight):
            nn.init.normal_(matrix, 0, init)

    def forward(self, tokens):
        states = self.embedding(tokens)
        for norm in self.norms:
            read = norm(states)[:, None]
            states = states + nn.functional.scaled_dot_product_attention(read, read, read, is_causal=self.causal)[:, 0]
        return self.head(self.last(states))


def next_token_loss(model, tokens):
    return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@pytest.mark.parametrize("settings, raised", [
    ({}, []), ({"causal": False}, ["causality"]), ({"final_norm": False}, ["signal"]), ({"init": 3}, ["initial_loss"])])
def test_alarms_of_a_language_model(settings, raised):
    torch.manual_seed(0)
    model, batches = Decoder(**settings), [torch.randint(30, (8, 12)) for _ in range(8)]
    found = plumb.check(model, torch.optim.AdamW(model.parameters(), lr=1e-3), next_token_loss, batches, budget=60)
    assert [one.alarm for one in found.reasons if one.raised] == raised, found
    assert {"causality", "signal", "initial_loss"} <= {one.alarm for one in found.reasons}
    assert found.reference_loss == pytest.approx(math.log(30), abs=0.05)
    both = plumb.check(model, torch.optim.AdamW(model.parameters(), lr=1e-3), lambda model, tokens: next_token_loss(model, tokens)
                       + 0.1 * model.head.weight.square().sum(), batches, budget=60)
    assert both.reference_loss is None  # not the cross-entropy alone


def test_a_head_that_begins_at_zero_is_no_leak():
    torch.manual_seed(0)
    model, batches = Decoder(), [torch.randint(30, (8, 12)) for _ in range(8)]
    nn.init.zeros_(model.head.weight)
    found = plumb.check(model, torch.optim.AdamW(model.parameters(), lr=1e-3), next_token_loss, batches, budget=20)
    assert found.reference_loss is not None and "causality" not in {one.alarm for one in found.reasons}


def test_a_matrix_behind_one_that_begins_at_zero_has_a_gradient_later():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    nn.init.zeros_(model[1].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = plumb.check(model, optimizer, lambda m, x: (m(x) - 1).square().mean(), [torch.randn(8, 3)], budget=20)
    assert reason(found, "gradients").value == 0


class Interrupted(nn.Module):
    def __init__(self, after):
        super().__init__()
        self.inner, self.calls, self.after = nn.Linear(3, 1), [], after

    def forward(self, x):
        self.calls.append(1)
        if len(self.calls) == self.after:
            raise KeyboardInterrupt
        return self.inner(x)


def everything(model, optimizer, loader):
    scheduled = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    return copy.deepcopy((model.state_dict(), [p.grad for p in model.parameters()], optimizer.state_dict()["state"], scheduled,
                          [module.training for module in model.modules()], torch.get_rng_state(), random.getstate(),
                          np.random.get_state()[1], loader.generator.get_state()))


@pytest.mark.parametrize("interrupted", [False, True])
def test_leaves_everything_as_found(interrupted):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.Linear(4, 3), Interrupted(40))
    model[-1].after = 0
    model[1].eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10))
    data = torch.utils.data.TensorDataset(torch.randn(32, 3), torch.randn(32, 1))
    loader = torch.utils.data.DataLoader(data, 8, shuffle=True, generator=torch.Generator().manual_seed(3))

    def loss(model, batch):
        return nn.functional.mse_loss(model(batch[0]), batch[1]) + 0 * random.random() + 0 * np.random.rand()

    for batch in loader:
        loss(model, batch).backward()
        optimizer.step()
        scheduler.step()
    before, objects = everything(model, optimizer, loader), [(p, p.grad) for p in model.parameters()]
    if interrupted:
        model[-1].after = len(model[-1].calls) + 40
        with pytest.raises(KeyboardInterrupt):
            plumb.check(model, optimizer, loss, loader, budget=300)
    else:
        found = plumb.check(model, optimizer, loss, loader, budget=300)
        assert found.planned_rate == 1e-2 and found.trials  # the scheduler's peak, not its present rate
    assert same(before, everything(model, optimizer, loader))
    assert all(p is q and g is p.grad for (p, g), q in zip(objects, model.parameters()))
    optimizer.step()  # still that of the model
    assert not same(before[0], model.state_dict())


def test_answers_do_not_depend_on_chance():
    answers = []
    for _ in range(2):
        model, optimizer, batches = transformer(3e-3)
        found = plumb.check(model, optimizer, loss_of, iter(batches), budget=200)
        answers.append([trial.losses for trial in found.trials])
        torch.randn(3)
    assert answers[0] == answers[1] and answers[0]


def test_groups_and_clipping():
    """Two groups with curvatures 4 and 1: the second's rate is four times the first's, so that both are as close."""
    model = nn.ParameterList([nn.Parameter(torch.ones(1, dtype=torch.float64)) for _ in range(2)])
    groups = [{"params": [model[0]], "lr": 0.1}, {"params": [model[1]], "lr": torch.tensor(0.4)}]

    def loss(model, batch):
        return (2 * model[0].square() + 0.5 * model[1].square()).sum()

    found = plumb.check(model, torch.optim.SGD(groups, lr=1.0), loss, [0], budget=1500)
    assert found.planned_rate == pytest.approx(0.4)
    assert found.largest_stable_rate.low < 2 < found.largest_stable_rate.high  # of the second group: 2/1
    assert groups[1]["lr"] == torch.tensor(0.4)
    # With clipping, nothing diverges to infinity: it stays where steps of the length rate·1 lead to and fro.
    clipped = plumb.check(model, torch.optim.SGD(groups, lr=1.0), loss, [0], budget=1500, clip_norm=1e-9)
    assert all(trial.outcome == "unmoved" for trial in clipped.trials if trial.learning_rate < 1e3)


@pytest.mark.parametrize("settings, gain", [({}, 1), ({"momentum": 0.9}, 10), ({"momentum": 0.5, "dampening": 0.5}, 1)])
def test_steps_of_a_constant_gradient_grow_with_momentum(settings, gain):
    tensor = nn.Parameter(torch.zeros(1, dtype=torch.float64))
    optimizer = torch.optim.SGD([tensor], lr=1.0, **settings)
    for _ in range(300):
        before, tensor.grad = tensor.item(), torch.ones(1, dtype=torch.float64)
        optimizer.step()
    assert before - tensor.item() == pytest.approx(gain) and _momentum_gain(optimizer) == pytest.approx(gain)


def test_shows_itself():
    found = quadratic(0.01)
    page = found._repr_html_()
    assert "Will it train?" in page and "80%" in page
    assert page.count("<circle") + page.count("<polygon") == len(found.trials) + len({trial.outcome for trial in found.trials})
    assert "largest stable rate" in repr(found) and "recommended" in repr(found)


def test_errors():
    model = Quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(plumb.Error, match="none of the model's parameters"):
        plumb.check(Quadratic(), optimizer, lambda m, b: m(b), [1.0])
    with pytest.raises(plumb.Error, match="at least one batch"):
        plumb.check(model, optimizer, lambda m, b: m(b), [])
    with pytest.raises(plumb.Error, match="another model"):
        plumb.check(model, optimizer, lambda _, b: model(b), [1.0])
    assert model.weight.grad is None
    with pytest.raises(plumb.Error, match="no single number"):
        plumb.check(model, optimizer, lambda m, b: m.weight, [1.0])
    with pytest.raises(plumb.Error, match="the budget must be"):
        plumb.check(model, optimizer, lambda m, b: m(b), [1.0], budget="much")
    with pytest.raises(plumb.Error, match="of how many steps"):
        plumb.check(model, optimizer, lambda m, b: m(b), [1.0], budget="5%")
    with pytest.raises(plumb.Error, match="learning rate is 0"):
        plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.0), lambda m, b: m(b), [1.0])
    with pytest.raises(plumb.Error, match="closure"):
        plumb.check(model, torch.optim.LBFGS(model.parameters()), lambda m, b: m(b), [1.0])


class Owning(torch.optim.SGD):
    """Keeps an option in an attribute, as optimizers outside PyTorch do."""

    def __init__(self, parameters, lr, scale):
        super().__init__(parameters, lr=lr)
        self.scale = scale

    def step(self, closure=None):
        for group in self.param_groups:
            for tensor in group["params"]:
                tensor.grad.mul_(self.scale)
        return super().step(closure)


def test_optimizers_with_attributes_of_their_own():
    model = Quadratic()
    found = plumb.check(model, Owning(model.parameters(), 0.01, 10.0), lambda model, batch: model(batch), [1.0], budget=2000)
    assert float(found.largest_stable_rate) == pytest.approx(0.05, rel=0.3)  # 2/λ over the scale


def test_batches_that_end_are_an_error():
    class Stream:
        def __init__(self):
            self.stored = iter([1.0] * 5)

        def __iter__(self):
            return self.stored

    model = Quadratic()
    with pytest.raises(plumb.Error, match="do not begin anew"):
        plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.01), lambda model, batch: model(batch), Stream())


def test_short_runs_say_so():
    found = quadratic(0.01, steps=15)
    assert found.verdict == "unknown" and "15 steps is too short" in found.answer


def test_the_probe_is_the_same_each_time():
    """Also where the loss draws from NumPy's or Python's random numbers."""
    seen = []

    def loss(model, batch):
        if not model.training:
            seen.append((np.random.rand(), random.random()))
        return model(batch)

    model = Quadratic()
    plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.01), loss, [1.0], budget=200)
    assert len(set(seen)) == 1


def test_the_sampler_of_a_batch_sampler_is_left_as_found():
    data = torch.utils.data
    generator = torch.Generator().manual_seed(3)
    batches = data.BatchSampler(data.RandomSampler(range(8), generator=generator), 2, False)
    loader = data.DataLoader(torch.ones(8, dtype=torch.float64), batch_sampler=batches)
    before = generator.get_state()
    model = Quadratic()
    plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.01), lambda model, batch: model(batch.mean()), loader, budget=200)
    assert torch.equal(generator.get_state(), before)


def classes(depth, momentum, **others):
    """Eight clusters of points, and a net with batch norms."""
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (
        nn.Linear(32, 32, bias=False), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(32, 8))
    torch.manual_seed(1)
    centers = 2 * torch.randn(8, 32)
    labels = [torch.randint(8, (64,)) for _ in range(40)]
    return model, [(centers[y] + torch.randn(64, 32), y) for y in labels]


def of_classes(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


@pytest.mark.parametrize("momentum", [0.1, 0.01, None])
def test_batch_norms_are_judged_as_they_are_trained(momentum):
    model, batches = classes(12, momentum)
    found = plumb.check(model, torch.optim.AdamW(model.parameters(), lr=1e-3), of_classes, batches, steps=2000, budget=170,
                        reference_loss=math.log(8))
    assert found.verdict == "trains" and found.trials[0].losses[-1] < 1, found
    assert not any(buffer.any() for name, buffer in model.named_buffers() if "running_mean" in name)


class Reading:
    """Cannot be indexed, as a DataLoader."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


@pytest.mark.parametrize("place", [0, 1, 10])
@pytest.mark.parametrize("kind", ["without labels", "infinite"])
@pytest.mark.parametrize("of", [list, Reading])
def test_a_batch_whose_loss_is_not_finite_is_named(place, kind, of):
    model, batches = classes(1, 0.1)
    x, y = batches[place]
    batches[place] = (x, torch.full((64,), -100)) if kind == "without labels" else (x / torch.zeros_like(x), y)
    found = plumb.check(model, torch.optim.AdamW(model.parameters(), lr=3e-3), of_classes, of(batches), steps=2000, budget=100,
                        reference_loss=math.log(8))
    assert found.verdict == "trains" and math.isfinite(found.first_loss), found
    batch = reason(found, "batch")
    assert batch.raised and batch.place == f"batch {place}" and [one.alarm for one in found.reasons].count("batch") == 1
    assert ("all labels are ignored" if kind == "without labels" else "not finite") in batch.text
    assert found.reasons[0].raised and "! the loss of batch" in repr(found)


def test_of_several_optimizers_all_step():
    def make():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))

    def loss(model, x):
        return (model(x) - x[:, :1]).square().mean()

    batches = [torch.randn(16, 4) for _ in range(4)]
    model, other = make(), make()
    one = torch.optim.SGD([{"params": model[0].parameters(), "lr": 0.1}, {"params": model[2].parameters(), "lr": 0.02}])
    two = [torch.optim.SGD(other[0].parameters(), lr=0.1), torch.optim.SGD(other[2].parameters(), lr=0.02)]
    found = [plumb.check(*pair, loss, batches, budget=170) for pair in ((model, one), (other, two), (other, tuple(two)))]
    assert found[0].trials[0].losses == found[1].trials[0].losses == found[2].trials[0].losses
    assert found[0].verdict == found[1].verdict and found[1].planned_rate == 0.1
    mixed = [torch.optim.Muon([other[0].weight, other[2].weight], lr=0.02) if hasattr(torch.optim, "Muon") else two[0],
             torch.optim.AdamW([other[0].bias, other[2].bias], lr=0.01)]
    assert plumb.check(other, mixed, loss, batches, budget=100).trials
    assert all(not one.state for one in mixed)


class Averaging(torch.optim.SGD):
    """Has the interface of Schedule-Free: trains other weights than those that it means to be used."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr=lr)
        self.trains = False

    def train(self):
        self.change(True)

    def eval(self):
        self.change(False)

    def change(self, trains):
        if trains != self.trains:
            self.trains = trains
            for group in self.param_groups:
                for tensor in group["params"]:
                    tensor.data.add_(1.0 if trains else -1.0)

    def step(self, closure=None):
        assert self.trains
        return super().step(closure)


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_optimizers_with_two_points(mode):
    model = Quadratic()
    optimizer = Averaging(model.parameters(), 0.1)
    getattr(optimizer, mode)()
    before = model.weight.detach().clone()
    found = plumb.check(model, optimizer, lambda model, batch: model(batch), [1.0], budget=100)
    assert torch.equal(model.weight, before) and optimizer.trains == (mode == "train")
    # It converges to 0 where it trains, and 1 below is what is judged.
    assert found.trials[0].losses[-1] == pytest.approx(0.5 * CURVATURES.sum().item(), rel=1e-2)


@pytest.mark.parametrize("kind", ["AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"])
def test_schedule_free_optimizers(kind):
    schedulefree = pytest.importorskip("schedulefree")
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    batches = [(x, x.sum(1, keepdim=True))]

    def loss(model, batch):
        return (model(batch[0]) - batch[1]).square().mean()

    def make():
        torch.manual_seed(1)
        model = nn.Linear(5, 1)
        return model, getattr(schedulefree, kind)(model.parameters(), lr=0.01)

    model, optimizer = make()
    trial = plumb.check(model, optimizer, loss, batches, budget=100).trials[0]
    for group in optimizer.param_groups:
        group["lr"] = trial.learning_rate
    optimizer.train()
    losses = []
    for step in range(1, trial.steps[-1] + 1):
        optimizer.zero_grad()
        loss(model, batches[0]).backward()
        optimizer.step()
        if step in trial.steps:
            optimizer.eval()
            losses.append(loss(model, batches[0]).item())
            optimizer.train()
    assert trial.losses[1:] == pytest.approx(losses, rel=1e-3)


def test_what_cannot_be_copied_or_has_no_rate():
    model = Quadratic()
    model.lock = threading.Lock()
    with pytest.raises(plumb.Error, match="cannot be copied: cannot pickle"):
        plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.1), lambda m, b: m(b), [1.0])
    model = Quadratic()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    del optimizer.param_groups[0]["lr"]
    with pytest.raises(plumb.Error, match="no learning rate"):
        plumb.check(model, optimizer, lambda m, b: m(b), [1.0])
    with pytest.raises(plumb.Error, match="is no optimizer"):
        plumb.check(model, object(), lambda m, b: m(b), [1.0])


class Counting(torch.utils.data.IterableDataset):
    def __init__(self):
        self.given, self.random = 0, np.random.default_rng(2)

    def __iter__(self):
        for place in range(self.given % 48, 48):
            self.given += 1
            yield DATA[place] + float(self.random.standard_normal())


class Stateful:
    """Goes on where it was left."""

    def __init__(self):
        self.at = 0

    def __iter__(self):
        while self.at < 12:
            self.at += 1
            yield DATA[4 * self.at - 4:4 * self.at]
        self.at = 0


class Wrapped:
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        return iter(self.inner)


DATA = torch.randn(48, 3, generator=torch.Generator().manual_seed(0))


def generator():
    return torch.Generator().manual_seed(7)


def seedable():
    accelerate = pytest.importorskip("accelerate")
    from accelerate.data_loader import SeedableRandomSampler
    from accelerate.state import AcceleratorState, GradientState, PartialState  # noqa: F401

    AcceleratorState._reset_state(True)
    GradientState._reset_state()
    made = accelerate.Accelerator(cpu=True)
    loader = torch.utils.data.DataLoader(DATA, 4, sampler=SeedableRandomSampler(DATA, data_seed=3))
    return made.prepare(loader)


def loader(**options):
    return torch.utils.data.DataLoader(DATA, 4, **options)


LOADERS = {
    "persistent workers": lambda: loader(num_workers=1, persistent_workers=True, shuffle=True, generator=generator()),
    "persistent workers, no shuffle": lambda: loader(num_workers=1, persistent_workers=True),
    "workers": lambda: loader(num_workers=1, shuffle=True), "wrapped": lambda: Wrapped(loader(shuffle=True, generator=generator())),
    "random_split": lambda: torch.utils.data.DataLoader(torch.utils.data.random_split(DATA, [40, 8], generator())[0], 4, shuffle=True),
    "distributed": lambda: loader(sampler=torch.utils.data.DistributedSampler(DATA, 1, 0, seed=3)),
    "counting": lambda: torch.utils.data.DataLoader(Counting(), 4), "stateful": Stateful, "seedable": seedable,
    "concatenated": lambda: torch.utils.data.DataLoader(torch.utils.data.ChainDataset([Counting()]), 4),
}


@pytest.mark.parametrize("kind", LOADERS)
@pytest.mark.parametrize("begun", [False, True])
def test_loaders_are_left_as_found(kind, begun):
    """Training afterwards reads what it reads without a check, and a second check says the same."""
    def read(batches):
        return [batch.tolist() for _ in range(2) for batch in batches]

    seen, answers = [], []
    for checked in (False, True):
        batches = LOADERS[kind]()
        torch.manual_seed(9)
        if begun:
            next(iter(batches))
        for _ in range(2 * checked):
            torch.manual_seed(5)
            model = nn.Linear(3, 1)
            found = plumb.check(model, torch.optim.SGD(model.parameters(), lr=0.01),
                                lambda model, x: (model(x) - x[:, :1]).square().mean(), batches, budget=60, warm_up=0)
            answers.append([trial.losses for trial in found.trials])
        torch.manual_seed(11)
        seen.append(read(batches))
    assert seen[0] == seen[1] and answers[0] == answers[1]


def test_batches_of_a_function():
    """As get_batch of nanoGPT: 256 of its batches, in another order for each seed."""
    made = []

    def get_batch():
        made.append(torch.randn(4, 3))
        return made[-1]

    model = nn.Linear(3, 1)
    found = plumb.check(model, torch.optim.SGD(model.parameters(), 0.01), lambda model, x: model(x).square().mean(), get_batch,
                        budget=100)
    assert found.trials and len(made) == 256


def test_what_is_neither_a_loop_nor_a_trainer():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for arguments, options in (((optimizer,), {}), ((optimizer, lambda model, x: model(x).mean()), {}), ((), {"steps": 10}),
                               ((), {"warm_up": 10}), ((), {"clip_norm": 1.0})):
        with pytest.raises(plumb.Error, match="has model, optimizer, loss and batches, and a Trainer"):
            plumb.check(model, *arguments, **options)


def test_a_compiled_model_is_not_compiled_for_each_trial():
    if not hasattr(torch.compiler, "set_stance"):
        pytest.skip("PyTorch 2.6 or later")
    graphs, x = [], torch.randn(8, 3)

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    try:
        model = torch.compile(nn.Linear(3, 1), backend=backend)
        model(x)
    except Exception as error:  # by a PyTorch that does not support this Python
        pytest.skip(f"torch.compile: {error}")
    found = plumb.check(model, torch.optim.SGD(model.parameters(), 0.01), lambda model, x: model(x).square().mean(), [x], budget=100)
    assert found.trials and len(graphs) == 1
    model(2 * x).sum().backward()  # compiled as before
    assert len(graphs) == 1
