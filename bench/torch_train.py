#!/usr/bin/env python3
"""A training step of an encoder-decoder in eager PyTorch: forward, backward, Adam. The counterpart of `plumb bench train`;
prints one line of JSON with its keys."""
import json

import torch
from torch import nn

import torch_model


def main():
    options = torch_model.arguments(__doc__, d_model=512, feed_forward=1024, heads=4, layers=6, vocabulary=10000,
                                    sentences=64, length=32)
    model = torch_model.Model(options, dropout=0.1)
    source, target, labels = torch_model.batch(options)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        logits = model(source, target)
        criterion(logits.view(-1, options.vocabulary), labels.view(-1)).backward()
        optimizer.step()

    seconds = torch_model.median_seconds(step, options.runs)
    print(json.dumps({'seconds_per_step': seconds, 'target_tokens_per_second': labels.numel() / seconds,
                      **torch_model.common_results(model, options)}))


if __name__ == '__main__':
    main()
