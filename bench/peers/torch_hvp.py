"""Gradients (eager and compiled) and Hessian-vector products in PyTorch: by differentiating twice with the gradient's graph
kept, and by forward over reverse differentiation, which keeps no graph and does about twice the matrix products; both eager,
since torch.compile cannot differentiate twice, and takes minutes over the second way. The counterpart of `plumb bench hvp`."""
import time
from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.func import functional_call, grad, jvp
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_model
from exported import arguments, read_work
from turns import Figures, median_seconds, take_turns


def prepare() -> tuple[Mapping[str, Callable[[], Figures]], Figures]:
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    work = read_work(options.export)
    source, target, labels = (ids.to(options.device) for ids in torch_model.tensors(work['batch']))
    model = torch_model.load(options.export, work['sizes'], dropout=0.0).to(options.device)
    parameters = {name: p.detach().requires_grad_() for name, p in model.named_parameters()}
    leaves = list(parameters.values())
    count = sum(leaf.numel() for leaf in leaves)
    vector = {name: torch.full_like(p, count ** -0.5).detach() for name, p in parameters.items()}

    def loss(values: dict[str, Tensor]) -> Tensor:
        logits = functional_call(model, values, (source, target))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def eager_gradient() -> tuple[Tensor, ...]:
        return torch.autograd.grad(loss(parameters), leaves)

    compiled_loss = torch.compile(loss, dynamic=False)

    def compiled_gradient() -> tuple[Tensor, ...]:
        return torch.autograd.grad(compiled_loss(parameters), leaves)

    with sdpa_kernel(SDPBackend.MATH):  # the only backend that can be differentiated twice
        value = loss(parameters)
        kept = torch.autograd.grad(value, leaves, create_graph=True)
    torch_model.check('the loss', value.item(), work['loss'], 1e-4)

    def graph_kept() -> dict[str, Tensor]:
        products = torch.autograd.grad(kept, leaves, grad_outputs=list(vector.values()), retain_graph=True)
        return dict(zip(parameters, products))

    def forward_over_reverse(values: dict[str, Tensor], direction: dict[str, Tensor]) -> dict[str, Tensor]:
        with sdpa_kernel(SDPBackend.MATH):
            tangents: dict[str, Tensor] = jvp(grad(loss), (values,), (direction,))[1]
        return tangents

    plain = {name: p.detach() for name, p in parameters.items()}
    begin = time.perf_counter()
    compiled_gradient()
    products = {'eager, graph kept': graph_kept,
                'eager, forward over reverse': lambda: forward_over_reverse(plain, vector)}
    for name, product in products.items():
        along = float(sum((p * vector[key]).sum() for key, p in product().items()))
        torch_model.check(f'the curvature ({name})', along, work['curvature'], 1e-3)
    compiling = time.perf_counter() - begin

    def timed(key: str, function: Callable[[], object]) -> Callable[[], Figures]:
        return lambda: {key: median_seconds(function, options.runs)}

    works = {'gradient, eager': timed('gradient_seconds', eager_gradient),
             'gradient, compiled': timed('gradient_seconds', compiled_gradient),
             **{name: timed('hvp_seconds', product) for name, product in products.items()}}
    return works, {'versions': {'PyTorch': torch.__version__}, 'compile_seconds': compiling}


if __name__ == '__main__':
    take_turns(prepare)
