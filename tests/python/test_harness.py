"""plumb.harness: what lm-evaluation-harness asks, and how it is answered; its classes are imitated where it is not installed."""

import abc
import importlib.util
import sys
import types

import pytest

import plumb
from plumb import harness

INSTALLED = importlib.util.find_spec("lm_eval") is not None


class Request:
    def __init__(self, *args):
        self.args = args


class Loaded:
    """Answers that tell which request they belong to."""

    def __init__(self):
        self.completed = []

    def log_likelihoods(self, pairs):
        return [(-float(len(continuation)), context == "yes") for context, continuation in pairs]

    def log_likelihood(self, texts):
        return [-len(text) / 2 for text in texts]

    def complete(self, *, prompts, until, max_tokens):
        self.completed.append((prompts, until, max_tokens))
        return [prompt.upper() for prompt in prompts]


def imitated():
    """The modules of the harness that are used here, and the models that are registered."""
    models = {}

    class LM(abc.ABC):
        def __init__(self):
            self.cache_hook = None

        loglikelihood = abc.abstractmethod(lambda self, requests: None)
        loglikelihood_rolling = abc.abstractmethod(lambda self, requests: None)
        generate_until = abc.abstractmethod(lambda self, requests: None)

    names = ("lm_eval", "lm_eval.api", "lm_eval.api.model", "lm_eval.api.registry")
    modules = {name: types.ModuleType(name) for name in names}
    modules["lm_eval.api.model"].LM = LM
    modules["lm_eval.api.registry"].register_model = lambda name: lambda made: models.setdefault(name, made)
    return modules, models


@pytest.fixture
def model_class(monkeypatch):
    if not INSTALLED:
        for name, module in imitated()[0].items():
            monkeypatch.setitem(sys.modules, name, module)
        harness.model_class.cache_clear()
    yield harness.model_class()
    if not INSTALLED:
        harness.model_class.cache_clear()


@pytest.fixture
def model(model_class, monkeypatch):
    loaded = Loaded()
    monkeypatch.setattr(harness, "load", lambda path, *, data: loaded)
    made = model_class(pretrained="models/gpt2", batch_size=1)
    made.kept = []
    made.cache_hook = types.SimpleNamespace(add_partial=lambda *entry: made.kept.append(entry))
    made.loaded = loaded
    return made


def test_continuations_and_texts_are_scored(model):
    requests = [Request("yes", " of it"), Request("", "a")]
    assert model.loglikelihood(requests) == [(-6.0, True), (-1.0, False)]
    assert model.kept == [("loglikelihood", ("yes", " of it"), (-6.0, True)), ("loglikelihood", ("", "a"), (-1.0, False))]
    assert model.loglikelihood_rolling([Request("four"), Request("eight 89")]) == [-2.0, -4.0]
    assert model.loglikelihood([]) == []


def test_a_part_is_kept_before_the_next(model, monkeypatch):
    monkeypatch.setattr(harness, "_PART", 2)
    sizes = []
    model.loaded.log_likelihoods = lambda pairs: sizes.append((len(pairs), len(model.kept))) or [(0.0, True)] * len(pairs)
    assert len(model.loglikelihood([Request("a", "b")] * 5)) == 5
    assert sizes == [(2, 0), (2, 2), (1, 4)]


def test_prompts_with_the_same_options_are_completed_together(model):
    line, mark = {"until": ["\n"], "max_gen_toks": 5, "do_sample": False}, {"until": "Q:", "do_sample": True, "temperature": 0}
    requests = [Request("a", line), Request("b", mark), Request("c", dict(line)), Request("d", {})]
    assert model.generate_until(requests) == ["A", "B", "C", "D"]
    assert model.loaded.completed == [(["a", "c"], ["\n"], 5), (["b"], ["Q:"], 256), (["d"], [], 256)]
    with pytest.raises(plumb.Error, match="asks for samples"):
        model.generate_until([Request("a", {"do_sample": True, "temperature": 0.8})])


def test_errors(model_class, monkeypatch):
    with pytest.raises(plumb.Error, match="computes on the CPU"):
        model_class(pretrained="models/gpt2", device="cuda")
    monkeypatch.setenv("PLUMB_PROGRAM", "/bin/false")
    with pytest.raises(plumb.Error, match="models/gpt2 is not a directory"):
        model_class(pretrained="models/gpt2")


@pytest.mark.skipif(INSTALLED, reason="lm-evaluation-harness is installed")
def test_the_name_is_registered_once(monkeypatch):
    modules, models = imitated()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    for cached in (harness.model_class, harness.register):
        cached.cache_clear()
    assert harness.register() is harness.register() is models["plumb"]
    assert issubclass(models["plumb"], modules["lm_eval.api.model"].LM)
    for cached in (harness.model_class, harness.register):
        cached.cache_clear()


@pytest.mark.skipif(INSTALLED, reason="lm-evaluation-harness is installed")
def test_the_harness_is_imported_only_when_it_is_needed():
    harness.model_class.cache_clear()
    with pytest.raises(ImportError, match="pip install lm_eval"):
        harness.model_class()
