"""The spectrum of one's own loss: a small convolutional net on digits, before training and after it. Takes ten seconds."""

import torch
from torch import nn

import plumb


def digits(count):
    """Noisy pictures of the digits 0 to 9 on seven segments, (count, 1, 7, 5), and which they are."""
    segments = ["012345", "45", "01346", "03456", "2456", "02356", "012356", "045", "0123456", "023456"]
    places = {"0": (0, slice(1, 4)), "1": (slice(4, 6), 0), "2": (slice(1, 3), 0), "3": (6, slice(1, 4)),
              "4": (slice(1, 3), 4), "5": (slice(4, 6), 4), "6": (3, slice(1, 4))}
    pictures = torch.zeros(10, 7, 5)
    for digit, lit in enumerate(segments):
        for segment in lit:
            pictures[digit][places[segment]] = 1
    labels = torch.randint(10, (count,))
    return (pictures[labels] + 0.3 * torch.randn(count, 7, 5)).unsqueeze(1), labels


def main():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.GELU(), nn.Flatten(), nn.Linear(120, 10))
    pictures, labels = digits(256)

    def loss():
        return nn.functional.cross_entropy(model(pictures), labels)

    before = plumb.spectrum(loss, model, steps=30)
    print("Before training\n", before, sep="")
    print(plumb.spectrum(loss, model, by={"convolution": r"^0\.", "norm": r"^1\.", "linear": r"^4\."}, steps=30))

    rate = 1 / float(before.max)  # half of 2/λ_max, from where on gradient descent would diverge on a quadratic loss
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for _ in range(200):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    after = plumb.spectrum(loss, model, steps=30)
    print(f"After 200 steps of gradient descent with a rate of {rate:.3g}\n", after, sep="")
    print(f"The largest eigenvalue is {float(after.max) / float(before.max):.2g} times what it was.")


if __name__ == "__main__":
    main()
