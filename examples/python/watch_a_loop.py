"""Watching a loop of one's own: how close Adam's learning rate comes to the largest stable one, and what each block's update
is. Takes half a minute at most."""

import torch
from torch import nn

import plumb


def main():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True)
    model = nn.ModuleDict({"embed": nn.Embedding(40, 32), "body": nn.TransformerEncoder(layer, 4), "head": nn.Linear(32, 40)})

    def loss(tokens):
        """Says which token stood five places before."""
        hidden = model["body"](model["embed"](tokens))
        return nn.functional.cross_entropy(model["head"](hidden[:, 5:]).flatten(0, 1), tokens[:, :-5].flatten())

    fixed = torch.randint(40, (8, 16))

    def curved():  # fused attention has no second derivative
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return loss(fixed)

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    watch = plumb.Watch(model, optimizer, every=50, loss=curved)
    for step in range(100):
        optimizer.zero_grad()
        value = loss(torch.randint(40, (16, 16)))
        value.backward()
        optimizer.step()
        if watch.new:
            seen = watch.values
            print(f"step {seen['step']:3}  loss {value.item():.3f}  sharpness {seen['sharpness']:9.3g}  "
                  f"rate / critical rate {seen['rate_share']:.3f}  update ratio of the first layer "
                  f"{seen['update_ratio/body.layers.0']:.2g}, of the last {seen['update_ratio/body.layers.3']:.2g}")


if __name__ == "__main__":
    main()
