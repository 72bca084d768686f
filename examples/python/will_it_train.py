"""Whether a small Transformer will train, before it does: at a rate that is too high, and at the one that is recommended.
Takes half a minute at most."""

import math

import torch
from torch import nn

import plumb


def planned(rate):
    """Model, optimizer and batches of a run that learns to say which token stood five places before."""
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
    model = nn.ModuleDict({"embed": nn.Embedding(40, 32), "body": nn.TransformerEncoder(layer, 4), "head": nn.Linear(32, 40)})
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    return model, optimizer, [torch.randint(40, (16, 16)) for _ in range(40)]


def loss(model, tokens):
    hidden = model["body"](model["embed"](tokens))
    return nn.functional.cross_entropy(model["head"](hidden[:, 5:]).flatten(0, 1), tokens[:, :-5].flatten())


def main():
    model, optimizer, batches = planned(0.1)
    # All 40 tokens are equally frequent: that is all that a model knows which does not look at its input.
    known = {"steps": 3000, "reference_loss": math.log(40)}
    checked = plumb.check(model, optimizer, loss, batches, **known)
    print(checked)
    if not checked and checked.recommended:
        rate = checked.recommended.learning_rate
        model, optimizer, batches = planned(rate)
        print(f"\nAt {rate:.2g}: {plumb.check(model, optimizer, loss, batches, **known).answer}")


if __name__ == "__main__":
    main()
