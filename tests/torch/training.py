"""Modules as users write them, compared with eager: results, gradients, and five steps of training:

    python training.py [NAME ...]

test_training.py runs a few of them.
"""

import copy
import sys
import time
import warnings

import agreement
import modules_images  # noqa: F401  (adds to CASES)
import modules_others  # noqa: F401
import modules_sequences  # noqa: F401
from modules import CASES

# isort: split
import torch


def trained(model, step, make):
    """Losses of five steps, and the parameters and buffers at the end."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        results = [t for t in torch.utils._pytree.tree_leaves(step(*make())) if isinstance(t, torch.Tensor) and t.requires_grad]
        loss = sum(t.abs().square().mean() for t in results)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return {f"loss {k}": loss for k, loss in enumerate(losses)} | model.state_dict()


def agrees(name):
    cls, makes, options = CASES[name]
    settings, tolerance = {key: value for key, value in options.items() if key != "tolerance"}, options.get("tolerance", 1e-4)
    torch.manual_seed(3)
    model = cls()
    pairs = [(copy.deepcopy(model), copy.deepcopy(model)) for _ in range(2)]
    called, fast = pairs[0][0], agreement.compiled(pairs[0][1], **settings)
    for make in makes:
        agreement.check(called, fast, make, backward=True, tolerance=tolerance)
    wanted, got = trained(pairs[1][0], pairs[1][0], makes[0]), trained(pairs[1][1], agreement.compiled(pairs[1][1], **settings), makes[0])
    assert list(wanted) == list(got)
    for key in wanted:
        torch.testing.assert_close(got[key], wanted[key], rtol=5 * tolerance, atol=tolerance, msg=lambda text, key=key: f"{key}: {text}")


def main(names):
    failed = 0
    warnings.simplefilter("ignore")
    for name in names or CASES:
        start, problem = time.time(), ""
        try:
            agrees(name)
        except Exception as error:
            problem, failed = f": {type(error).__name__}: {str(error)[:700]}", failed + 1
        print(f"{name} {time.time() - start:.1f} s{problem}", flush=True)
    print(f"{failed} of {len(names or CASES)} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
