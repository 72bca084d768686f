"""Differences put into one of two modules, each to be found where it was put."""

import copy
import math

import pytest
import torch
from torch import nn

import plumb


class Decoder(nn.Module):
    """A language model of one's own: its causal mask and the scale of its embeddings are code, not modules."""

    def __init__(self, scale=True, causal=True, shift=0):
        super().__init__()
        self.embed, self.position = nn.Embedding(19, 16), nn.Embedding(16, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.1, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 3, norm=nn.LayerNorm(16), enable_nested_tensor=False)
        self.head = nn.Linear(16, 19, bias=False)
        self.scale, self.causal, self.shift = scale, causal, shift

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.embed(tokens) * (math.sqrt(16) if self.scale else 1.0)
        x = x + self.position(torch.arange(self.shift, length + self.shift))
        mask = torch.triu(torch.full((length, length), float("-inf"), dtype=x.dtype), 1) if self.causal else None
        return self.head(self.body(x, mask=mask))


def decoder(**changes):
    torch.manual_seed(0)
    model = Decoder(**changes)
    for layer, factor in zip(model.body.layers, (1.0, 1.1, 0.9)):  # copies of one layer would hide that they are swapped
        for tensor in layer.parameters():
            tensor.data = factor * tensor.data + 0.01 * torch.randn_like(tensor)
    return model


def gpt2():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(vocab_size=19, n_positions=16, n_embd=16, n_layer=3, n_head=2,
                                     attn_implementation="eager")
    return transformers.GPT2LMHeadModel(config)


def nudge(model, name):
    with torch.no_grad():
        dict(model.named_parameters())[name].view(-1)[:2] += 0.01


def transpose(model, name):
    tensor = dict(model.named_parameters())[name]
    tensor.data = tensor.data.t().clone()


def put(module, **attributes):
    for name, value in attributes.items():
        setattr(module, name, value)


class Scaled(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return 1.5 * self.inner(x)


TOKENS = torch.arange(24).remainder(19).reshape(2, 12)
# What is done to a copy, and the module that has to be named.
OWN = {
    "a weight of the feed-forward": (lambda m: nudge(m, "body.layers.1.linear1.weight"), "body.layers.1.linear1"),
    "a bias": (lambda m: nudge(m, "body.layers.2.linear2.bias"), "body.layers.2.linear2"),
    "a projection of queries": (lambda m: nudge(m, "body.layers.0.self_attn.in_proj_weight"), "body.layers.0.self_attn"),
    "a transposed projection": (lambda m: transpose(m, "body.layers.1.self_attn.out_proj.weight"), "body.layers.1.self_attn"),
    "a gain": (lambda m: nudge(m, "body.layers.1.norm2.weight"), "body.layers.1.norm2"),
    "the last norm": (lambda m: nudge(m, "body.norm.bias"), "body.norm"),
    "an embedding": (lambda m: nudge(m, "embed.weight"), "embed"),
    "the head": (lambda m: nudge(m, "head.weight"), "head"),
    "another eps": (lambda m: put(m.body.layers[2].norm1, eps=1e-3), "body.layers.2.norm1"),
    "another number of heads": (lambda m: put(m.body.layers[0].self_attn, num_heads=4, head_dim=4), "body.layers.0.self_attn"),
    "another activation": (lambda m: put(m.body.layers[1], activation=nn.functional.gelu), "body.layers.1"),
    "no causal mask": (lambda m: put(m, causal=False), ""),
    "no scale of the embeddings": (lambda m: put(m, scale=False), ""),
    "positions shifted by one": (lambda m: put(m, shift=1), ""),
    "swapped layers": (lambda m: put(m.body, layers=nn.ModuleList([m.body.layers[i] for i in (0, 2, 1)])),
                       "body.layers.1.norm1"),
    "post-norm for pre-norm": (lambda m: put(m.body.layers[1], norm_first=False), "body.layers.1"),
    "a scaled module": (lambda m: put(m.body.layers[0], linear2=Scaled(m.body.layers[0].linear2)), "body.layers.0.linear2"),
    "a dropped bias": (lambda m: m.body.layers[1].linear1.register_parameter("bias", None), "body.layers.1.linear1"),
}
GPT2 = {
    "a weight of GPT-2": (lambda m: nudge(m, "transformer.h.1.mlp.c_proj.weight"), "transformer.h.1.mlp.c_proj"),
    "GPT-2's positions": (lambda m: nudge(m, "transformer.wpe.weight"), "transformer.wpe"),
    "GPT-2's eps": (lambda m: put(m.transformer.h[0].ln_2, eps=1e-2), "transformer.h.0.ln_2"),
    "GPT-2's activation": (lambda m: put(m.transformer.h[2].mlp, act=nn.ReLU()), "transformer.h.2.mlp.act"),
    "GPT-2's untied head": (lambda m: put(m.lm_head, weight=nn.Parameter(m.lm_head.weight + 0.1)), "lm_head"),
    "GPT-2's scale of attention": (lambda m: put(m.transformer.h[1].attn, scaling=0.1, scale_attn_weights=False),
                                   "transformer.h.1.attn"),
}


@pytest.mark.parametrize("name", [*OWN, *GPT2])
def test_is_found_where_it_was_put(name):
    model = decoder() if name in OWN else gpt2()
    change, expected = (OWN | GPT2)[name]
    other = copy.deepcopy(model)
    change(other)
    before = {key: tensor.clone() for key, tensor in other.state_dict().items()}
    call = None if name in OWN else lambda m, tokens: m(input_ids=tokens)
    found = plumb.diff(model, other, TOKENS, call=call)
    assert found.first is not None
    assert found.first.module == expected, found
    assert all(torch.equal(before[key], tensor) for key, tensor in other.state_dict().items())
    assert other.training and other.state_dict()[next(iter(before))].dtype == torch.float32
    assert (found.first.module or "the model itself") in repr(found)


def test_says_what_differs():
    model = decoder()
    weight, eps = copy.deepcopy(model), copy.deepcopy(model)
    nudge(weight, "body.layers.1.linear1.weight")
    eps.body.layers[2].norm1.eps = 1e-3
    assert plumb.diff(model, weight, TOKENS).first.parameters == ["body.layers.1.linear1.weight"]
    first = plumb.diff(model, eps, TOKENS).first
    assert not first.parameters and first.attributes == ["eps: 1e-05 and 0.001"]
    code = plumb.diff(model, decoder(scale=False), TOKENS)
    assert "scale: True and False" in code.first.attributes


def test_equal_models_agree_also_in_gradients():
    def loss(model, tokens):
        return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    model = decoder()
    found = plumb.diff(model, copy.deepcopy(model), TOKENS, loss)
    assert not found and len(found.gradients) == len(list(model.parameters()))
    assert all(one.difference == 0 for one in found.gradients)
    assert "They compute the same" in repr(found)


def test_names_may_differ():
    a, b = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    b.load_state_dict(a.state_dict())
    outer, renamed = nn.ModuleDict({"one": a}), nn.ModuleDict({"two": b})
    found = plumb.diff(outer, renamed, torch.randn(2, 3), call=lambda m, x: next(iter(m.values()))(x),
                       map=lambda name: name.replace("one", "two"))
    assert not found and len(found.outputs) == 3


def test_modules_that_work_in_place():
    def net(slope):
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(3, 4), nn.LeakyReLU(slope, inplace=True), nn.Linear(4, 2))

    found = plumb.diff(net(0.1), net(0.2), torch.randn(5, 3))
    assert found.first.module == "1" and found.first.attributes == ["negative_slope: 0.1 and 0.2"]


def test_gradients_alone_may_differ():
    class Detached(nn.Linear):
        def forward(self, x):
            return nn.functional.linear(x, self.weight.detach(), self.bias)

    model, other = nn.Linear(3, 2), Detached(3, 2)
    other.load_state_dict(model.state_dict())
    found = plumb.diff(model, other, torch.randn(4, 3), lambda m, x: m(x).square().mean())
    assert found and found.first is None and "not their gradients" in repr(found)
    with torch.no_grad():
        model.weight[0, 0] = math.nan
    assert not plumb.diff(model, copy.deepcopy(model), torch.randn(4, 3))


def llama(**changes):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=19, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, attn_implementation="eager", **changes))


def with_torch_norms(model, eps=None):
    """Norms that compute in the model's type, where those of transformers compute in float32."""
    model = copy.deepcopy(model)

    def norm(old, eps):
        new = nn.RMSNorm(old.weight.numel(), eps=eps or old.variance_epsilon)
        new.weight = old.weight
        return new

    for place, layer in enumerate(model.model.layers):
        layer.input_layernorm = norm(layer.input_layernorm, eps if place == 1 else None)
        layer.post_attention_layernorm = norm(layer.post_attention_layernorm, None)
    model.model.norm = norm(model.model.norm, None)
    return model


def of_tokens(model, tokens):
    return nn.functional.cross_entropy(model(input_ids=tokens).logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def test_norms_in_float32_do_not_hide_another_difference():
    model = llama()
    found = plumb.diff(model, with_torch_norms(model), TOKENS, of_tokens)
    assert not found and "Rounding differs in model.layers.0.input_layernorm" in found.notes[0], found
    assert max(one.difference for one in found.gradients) > 1e-9  # with float32's rounding, which grows on its way
    other = with_torch_norms(model, eps=0.1)
    found = plumb.diff(model, other, TOKENS)
    assert found.first.module == "model.layers.1.input_layernorm" and found.first.difference > 1e-3, found
    nudge(other, "model.layers.0.mlp.down_proj.weight")
    found = plumb.diff(model, other, TOKENS, of_tokens)
    assert found.first.module == "model.layers.0.mlp.down_proj" and found.also == ["model.layers.1.input_layernorm"], found
    assert found.first.parameters == ["model.layers.0.mlp.down_proj.weight"] and "After it, also" in repr(found)
    assert any(one.differs() for one in found.gradients)


def test_a_gradient_may_differ_beyond_rounding():
    class Detached(nn.Linear):
        def forward(self, x):
            return nn.functional.linear(x, self.weight.detach() * 0.999 + self.weight * 0.001, self.bias)

    model = llama()
    other = with_torch_norms(model)
    head = Detached(32, 19, bias=False)
    head.weight = other.lm_head.weight
    other.lm_head = head
    found = plumb.diff(model, other, TOKENS, of_tokens)
    assert found and found.first is None and [one.name for one in found.gradients if one.differs()] == ["lm_head.weight"], found


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_that_were_rounded(dtype):
    model = decoder()
    other = copy.deepcopy(model).to(dtype)
    for second in (other, copy.deepcopy(other).float()):
        found = plumb.diff(model, second, TOKENS)
        assert not found and "Rounding differs in" in found.notes[0], found
        second.body.layers[2].norm1.eps = 1.0
        found = plumb.diff(model, second, TOKENS)
        assert found.first.module == "body.layers.2.norm1" and found.first.attributes == ["eps: 1e-05 and 1.0"], found


@pytest.mark.parametrize("first, second", [(torch.float32, torch.float32), (torch.float32, torch.bfloat16),
                                           (torch.bfloat16, torch.bfloat16)])
def test_models_in_their_own_types(first, second):
    model, tokens = llama(), TOKENS
    a, b = copy.deepcopy(model).to(first), with_torch_norms(model).to(second)
    found = plumb.diff(a, b, tokens, dtype=None)
    assert not found and found.outputs and all(one.difference is not None for one in found.outputs), found
    with torch.no_grad():
        b.model.layers[1].mlp.up_proj.weight.mul_(1.5)
    found = plumb.diff(a, b, tokens, dtype=None)
    assert found.first.module == "model.layers.1.mlp.up_proj" and not found.also, found


def test_a_tolerance():
    model = decoder()
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.head.weight.mul_(1.001)
    assert plumb.diff(model, other, TOKENS).first.module == "head"
    assert not plumb.diff(model, other, TOKENS, tolerance=0.01) and plumb.diff(model, other, TOKENS, tolerance=1e-4)


def outputs_of(model, tokens, dtype):
    found = {}
    handles = [module.register_forward_hook(lambda m, i, o, n=name: found.setdefault(n, o.detach().contiguous()))
               for name, module in model.named_modules() if isinstance(module, (nn.Linear, nn.LayerNorm, nn.Embedding))]
    model.to(dtype).eval()(tokens)  # with gradients, so that the layers call their modules with every PyTorch
    for handle in handles:
        handle.remove()
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_outputs_that_were_stored(dtype):
    model = decoder()
    for change, expected in ((lambda m: None, None), (lambda m: m.body.layers[1].linear1.bias.data.add_(1), "body.layers.1.linear1"),
                             (lambda m: put(m, scale=False), "body.layers.0.norm1")):  # the first that reads the sum
        other = copy.deepcopy(model)
        change(other)
        found = plumb.diff(model, outputs_of(other, TOKENS, dtype), TOKENS)
        assert (found.first and found.first.module) == expected, found


class Block(nn.Module):
    def __init__(self, names, width=8):
        super().__init__()
        self.names = names
        for name, layer in zip(names, (nn.LayerNorm(width), nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))):
            self.add_module(name, layer)

    def forward(self, x):
        y = x
        for name in self.names:
            y = getattr(self, name)(y)
        return x + y


class Net(nn.Module):
    def __init__(self, layers, names, head):
        super().__init__()
        self.places = layers, head
        self.add_module(layers, nn.ModuleList(Block(names) for _ in range(3)))
        self.add_module(head, nn.Linear(8, 5))

    def forward(self, x):
        for block in getattr(self, self.places[0]):
            x = block(x)
        return getattr(self, self.places[1])(x)


@pytest.mark.parametrize("given", [None, {"head": "out"}])
def test_names_are_matched_by_shape_and_order(given):
    torch.manual_seed(0)
    first, second = Net("layers", ["norm", "up", "act", "down"], "head"), Net("h", ["ln_2", "c_fc", "gelu", "c_proj"], "out")
    with torch.no_grad():
        for a, b in zip(first.parameters(), second.parameters()):
            a.add_(0.1 * torch.randn_like(a))
            b.copy_(a)
    x = torch.randn(4, 8)
    found = plumb.diff(first, second, x, lambda m, x: m(x).square().mean(), map=given)
    assert not found and all(one.difference == 0 for one in found.parameters + found.gradients), found
    assert len([one for one in found.outputs if one.difference is not None]) == 17
    nudge(second, "h.1.c_proj.weight")
    found = plumb.diff(first, second, x, map=given)
    assert found.first.module == "layers.1.down" and found.first.parameters == ["layers.1.down.weight"], found


def test_a_difference_does_not_hide_those_after_it():
    model = decoder()
    other = copy.deepcopy(model)
    for name in ("body.layers.0.linear1.weight", "body.layers.2.norm2.bias", "head.weight"):
        nudge(other, name)
    found = plumb.diff(model, other, TOKENS)
    assert [found.first.module, *found.also] == ["body.layers.0.linear1", "body.layers.2.norm2", "head"], found
