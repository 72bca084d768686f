#!/usr/bin/env python3
"""A gradient and a Hessian-vector product in eager PyTorch by differentiating twice, the gradient's graph kept from product
to product. The counterpart of `plumb bench hvp`; prints one line of JSON with its keys."""
import json

import torch
from torch import nn

import torch_model


def main():
    options = torch_model.arguments(__doc__, d_model=256, feed_forward=1024, heads=4, layers=6, vocabulary=10000,
                                    sentences=16, length=24)
    model = torch_model.Model(options, dropout=0.0)
    parameters = list(model.parameters())
    source, target, labels = torch_model.batch(options)

    def loss():
        return nn.functional.cross_entropy(model(source, target).view(-1, options.vocabulary), labels.view(-1))

    gradient = torch_model.median_seconds(lambda: torch.autograd.grad(loss(), parameters), options.runs)
    with_graph = torch.autograd.grad(loss(), parameters, create_graph=True)
    vector = [torch.randn_like(parameter) for parameter in parameters]
    product = torch_model.median_seconds(
        lambda: torch.autograd.grad(with_graph, parameters, grad_outputs=vector, retain_graph=True), options.runs)
    print(json.dumps({'gradient_seconds': gradient, 'hvp_seconds': product, 'ratio': product / gradient,
                      **torch_model.common_results(model, options)}))


if __name__ == '__main__':
    main()
