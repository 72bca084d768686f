#!/usr/bin/env python3
"""Times Plumb beside curvlinops, hessian-eigenthings and PyHessian on one loss: a product of its Hessian with a vector, a
spectrum of 100 steps from one start, and the spectra of 12 diagonal blocks, one for each layer, of 20 steps each.

    pip install curvlinops-for-pytorch hessian-eigenthings pyhessian
    scripts/bench_curvature.py --repetitions 5

All are measured in turn, and the medians printed, so that what else the machine does falls on all alike. The last column is
the relative difference of the product from Plumb's. PyHessian has no blocks.

With --compiled, also curvlinops within torch.compile, which takes minutes before the first product. curvlinops 3.0.1 compiles
only an eighth of a product's operations, in pieces; its sources since then (commit 63fd690) compile all, in one graph:

    PYTHONPATH=CURVLINOPS scripts/bench_curvature.py --compiled
"""
import argparse
import inspect
import itertools
import re
import statistics
import sys
import time

import torch
from torch import nn

LAYERS, STEPS, BLOCK_STEPS = 12, 100, 20


class Model(nn.Module):
    def __init__(self, width, vocabulary):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, activation='gelu',
                                                               batch_first=True, norm_first=True) for _ in range(LAYERS))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x).flatten(0, 1)  # a row for each token, as CrossEntropyLoss expects


def plumb_tasks(model, criterion, x, y, vector):
    import plumb

    hessian = plumb.Hessian(lambda: criterion(model(x), y), model)
    return {'product': lambda: hessian @ vector,
            'spectrum': lambda: plumb.spectrum(lambda: criterion(model(x), y), model, steps=STEPS, probes=1),
            'blocks': lambda: plumb.spectrum(lambda: criterion(model(x), y), model, by=r'layers\.\d+', steps=BLOCK_STEPS,
                                             probes=1)}


def curvlinops_operator(model, criterion, x, y, within=''):
    """The Hessian of the parameters whose names begin so."""
    from curvlinops import HessianLinearOperator

    parameters = {name: tensor for name, tensor in model.named_parameters() if name.startswith(within)}
    if 'dict' not in str(inspect.signature(HessianLinearOperator).parameters['params'].annotation):  # up to 3.0.1
        parameters = list(parameters.values())
    return HessianLinearOperator(model, criterion, parameters, [(x, y)], check_deterministic=False)


def curvlinops_tasks(model, criterion, x, y, vector):
    from curvlinops.papyan2020traces.spectrum import fast_lanczos

    whole = curvlinops_operator(model, criterion, x, y)
    return {'product': lambda: whole @ vector, 'spectrum': lambda: fast_lanczos(whole, STEPS),
            'blocks': lambda: [fast_lanczos(curvlinops_operator(model, criterion, x, y, f'layers.{place}.'), BLOCK_STEPS)
                               for place in range(LAYERS)]}


class Compiled:
    """An operator whose products are compiled. Those of blocks would be compiled anew for each."""

    def __init__(self, operator):
        self.shape, self.dtype, self.device = operator.shape, operator.dtype, operator.device
        self.multiply = torch.compile(lambda vector: operator @ vector)

    def __matmul__(self, vector):
        return self.multiply(vector)


def compiled_curvlinops_tasks(model, criterion, x, y, vector):
    from curvlinops.papyan2020traces.spectrum import fast_lanczos
    from torch._dynamo.utils import counters

    whole = Compiled(curvlinops_operator(model, criterion, x, y))
    begin = time.perf_counter()
    whole @ vector
    print(f'compiled in {time.perf_counter() - begin:.0f} s: {counters["stats"]["unique_graphs"]} graphs with '
          f'{counters["stats"]["calls_captured"]} calls, {sum(counters["graph_break"].values())} interruptions', file=sys.stderr)
    return {'product': lambda: whole @ vector, 'spectrum': lambda: fast_lanczos(whole, STEPS)}


def eigenthings_tasks(model, criterion, x, y, vector):
    from hessian_eigenthings import HessianOperator, lanczos_tridiagonal, supervised_loss

    def operator(**options):
        return HessianOperator(model, [(x, y)], supervised_loss(criterion), **options)

    def spectrum(of, steps):
        return lanczos_tridiagonal(of, torch.randn(of.size, device=x.device), steps)

    def block(place):
        return operator(param_filter=lambda name, _: bool(re.match(rf'layers\.{place}\.', name)))

    whole = operator()
    return {'product': lambda: whole.matvec(vector), 'spectrum': lambda: spectrum(whole, STEPS),
            'blocks': lambda: [spectrum(block(place), BLOCK_STEPS) for place in range(LAYERS)]}


def pyhessian_tasks(model, criterion, x, y, vector):
    from pyhessian import hessian
    from pyhessian.utils import hessian_vector_product

    def eig(matrix, eigenvectors):  # it calls what PyTorch no longer has, of a symmetric matrix
        values, vectors = torch.linalg.eigh(matrix)
        return torch.stack([values, torch.zeros_like(values)], 1), vectors

    torch.eig = eig
    found = hessian(model, criterion, data=(x, y), cuda=x.is_cuda)
    model.zero_grad()
    pieces = [piece.reshape(tensor.shape) for piece, tensor in
              zip(vector.split([tensor.numel() for tensor in found.params]), found.params)]

    def product():
        return torch.cat([piece.flatten() for piece in hessian_vector_product(found.gradsH, found.params, pieces)])

    return {'product': product,
            'spectrum': lambda: hessian(model, criterion, data=(x, y), cuda=x.is_cuda).density(iter=STEPS, n_v=1)}


def finish(device):
    if device != 'cpu':
        torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--repetitions', type=int, default=5)
    parser.add_argument('--width', type=int, default=64)
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--length', type=int, default=32)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--threads', type=int, default=torch.get_num_threads())
    parser.add_argument('--compiled', action='store_true', help='also curvlinops within torch.compile')
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.mha.set_fastpath_enabled(False)  # whole layers in one operation, without second derivatives
    torch.manual_seed(0)
    vocabulary = 256
    model, criterion = Model(options.width, vocabulary).eval().to(options.device), nn.CrossEntropyLoss()
    tokens = torch.randint(vocabulary, (options.batch, options.length + 1)).to(options.device)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].flatten()
    count = sum(tensor.numel() for tensor in model.parameters())
    vector = torch.randn(count).to(options.device)

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        tools = {}
        for name, make in (('plumb', plumb_tasks), ('curvlinops', curvlinops_tasks),
                           ('curvlinops, compiled', compiled_curvlinops_tasks),
                           ('hessian-eigenthings', eigenthings_tasks), ('pyhessian', pyhessian_tasks)):
            if make is compiled_curvlinops_tasks and not options.compiled:
                continue
            try:
                tools[name] = make(model, criterion, x, y, vector)
            except ImportError as error:
                print(f'without {name}: {error}', file=sys.stderr)
        products = {name: tasks['product']().detach() for name, tasks in tools.items()}
        apart = {name: float((product - products['plumb']).norm() / product.norm()) for name, product in products.items()}
        seconds = {}
        for repetition, task, name in itertools.product(range(options.repetitions), ('product', 'spectrum', 'blocks'), tools):
            if task in tools[name]:
                begin = time.perf_counter()
                tools[name][task]()
                finish(options.device)
                seconds.setdefault((name, task), []).append(time.perf_counter() - begin)
                print(f'{repetition} {name} {task} {seconds[name, task][-1]:.3f} s', file=sys.stderr)

    where = f'{options.threads} threads' if options.device == 'cpu' else torch.cuda.get_device_name()
    print(f'{count:,} parameters, {y.numel()} tokens, {where}, PyTorch {torch.__version__}; '
          f'medians of {options.repetitions}\n')
    print('| | product | spectrum, 100 steps | 12 blocks, 20 steps | differs by |\n| --- | --- | --- | --- | --- |')
    for name in tools:
        cells = [f'{statistics.median(seconds[name, task]):.3g} s' if (name, task) in seconds else '–'
                 for task in ('product', 'spectrum', 'blocks')]
        print(f'| {name} | {" | ".join(cells)} | {apart[name]:.1g} |')


if __name__ == '__main__':
    main()
