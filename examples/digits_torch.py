"""Trains a classifier for scikit-learn's digits, in eager mode and with cinductor: the losses agree within rounding.

    pip install 'cinductor[torch]' scikit-learn
    python examples/digits_torch.py [cuda]
"""

import sys
import time

import torch
from sklearn.datasets import load_digits
from torch import nn


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def train(model, step, images, labels, epochs=20, batch=128):
    """The mean loss of each epoch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch)).to(images.device)
        total = 0.0
        for at in range(0, len(order) - batch + 1, batch):
            rows = order[at : at + batch]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(step(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            total += loss.item()
        losses.append(total / (len(order) // batch))
    return losses


def main(device="cpu", epochs=20):
    torch.set_num_threads(1)  # for a model this small, more threads only wait for each other
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32, device=device) / 16
    labels = torch.tensor(digits.target, device=device)
    split = 1500
    curves = {}
    for name in ("eager", "cinductor"):
        model = make_model().to(device)
        step = model if name == "eager" else torch.compile(model, backend="cinductor")
        start = time.perf_counter()
        curves[name] = train(model, step, images[:split], labels[:split], epochs)
        seconds = time.perf_counter() - start
        with torch.no_grad():
            right = (model(images[split:]).argmax(1) == labels[split:]).float().mean().item()
        print(f"{name:10} last loss {curves[name][-1]:.6f}  accuracy {right:.3f}  {seconds:.1f} s")
    furthest = max(abs(a - b) for a, b in zip(*curves.values(), strict=True))
    print(f"the losses differ by at most {furthest:.1e}")
    return furthest


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) > 1e-3)
