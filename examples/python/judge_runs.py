"""Judging runs from a table: twelve short runs with two optimizers, logged as CSV and then compared. Takes ten seconds."""

import csv
import pathlib
import tempfile

import torch
from torch import nn

import plumb


def run(optimizer, seed, steps=150):
    """The validation loss of a small net that learns a function of eight inputs."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    inputs = torch.randn(2000, 8)
    labels = torch.sin(inputs.sum(1, keepdim=True)) + 0.1 * torch.randn(2000, 1)
    kinds = {"adam": (torch.optim.Adam, 1e-2), "sgd": (torch.optim.SGD, 1e-1)}
    kind, rate = kinds[optimizer]
    descent = kind(model.parameters(), lr=rate)
    for step in range(steps):
        rows = torch.randint(1500, (64,))
        descent.zero_grad()
        nn.functional.mse_loss(model(inputs[rows]), labels[rows]).backward()
        descent.step()
    with torch.no_grad():
        return float(nn.functional.mse_loss(model(inputs[1500:]), labels[1500:]))


def main():
    table = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    with table.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["optimizer", "seed", "loss"])
        for optimizer in ("sgd", "adam"):
            for seed in range(6):
                writer.writerow([optimizer, seed, run(optimizer, seed)])

    arms = {}
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            arms.setdefault(row["optimizer"], []).append(float(row["loss"]))
    verdicts = plumb.judge(arms, margin=0.01)
    print(verdicts)
    print("Take Adam." if verdicts["adam"] else "Nothing speaks for Adam, yet.")
    print(f"In the shell: plumb judge {table} --by optimizer --margin 0.01")


if __name__ == "__main__":
    main()
