#!/usr/bin/python3
"""Trains the digit classifier of the demo and writes digits.onnx, the held-out set and ten sample images.

Data: the UCI ML hand-written digits (E. Alpaydin, C. Kaynak, 1998; CC BY 4.0), 1,797 images of 8 x 8 pixels, as scikit-learn
ships them. A fifth is held out. Needs Debian's python3-torch, python3-onnx, python3-sklearn; takes about two minutes:
    /usr/bin/python3 train.py [OUT_DIR]
The committed files come from this script (seed 0); `make demo` does not run it.
"""
import os
import sys
import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits

out = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(0)
rng = np.random.default_rng(0)
images, labels = load_digits(return_X_y=True)
images = (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
order = rng.permutation(len(images))
held, train = order[: len(order) // 5], order[len(order) // 5 :]


def block(i, o):
    return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(*block(c, c), nn.Conv2d(c, c, 3, padding=1, bias=False), nn.BatchNorm2d(c))

    def forward(self, x):
        return torch.relu(x + self.body(x))


model = nn.Sequential(*block(1, 24), Residual(24), nn.MaxPool2d(2), *block(24, 48), Residual(48),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10), nn.Softmax(dim=1))
optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
epochs = 40
schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, epochs=epochs, steps_per_epoch=-(-len(train) // 64))
x, y = torch.from_numpy(images), torch.from_numpy(labels)
for epoch in range(epochs):
    model.train()
    for at in torch.from_numpy(rng.permutation(train)).split(64):
        batch = x[at]
        dx, dy = rng.integers(-1, 2, 2)  # shifts by one pixel
        batch = torch.roll(batch, (int(dx), int(dy)), (2, 3))
        loss = nn.functional.nll_loss(torch.log(model(batch) + 1e-9), y[at])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
model.eval()
with torch.no_grad():
    right = (model(x[held]).argmax(1) == y[held]).float().mean().item()
print(f"held-out accuracy {right:.4f} on {len(held)} images")
torch.onnx.export(model, x[:1], os.path.join(out, "digits.onnx"), opset_version=13, do_constant_folding=False,
                  training=torch.onnx.TrainingMode.PRESERVE, input_names=["image"], output_names=["probability"],
                  dynamic_axes={"image": {0: "n"}, "probability": {0: "n"}})
np.save(os.path.join(out, "held_images.npy"), images[held])
np.save(os.path.join(out, "held_labels.npy"), labels[held].astype(np.int32))
os.makedirs(os.path.join(out, "samples"), exist_ok=True)
for digit in range(10):
    i = held[labels[held] == digit][0]
    pixels = (images[i, 0] * 255).round().astype(int)
    with open(os.path.join(out, "samples", f"{digit}.pgm"), "w") as f:
        f.write("P2\n8 8\n255\n" + "\n".join(" ".join(map(str, row)) for row in pixels) + "\n")
