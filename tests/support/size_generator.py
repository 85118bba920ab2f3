"""Generates the source of random functions whose sizes are computed from sizes, step after step.

A program is `def program(a, b, k):` over two vectors of floats and a Python int. Each step takes a part of a vector,
or joins parts, so the size of its result is an expression that uses the size before once or several times. All
results are exact, so they are compared bit by bit.
"""

import random

PARTS = [
    "V[len(V) // 2:]",
    "V[:len(V) // 2]",
    "V[len(V) // 3:]",
    "V[len(V) // 4:len(V) - len(V) // 5]",
    "V[::2]",
    "V[1::2]",
    "V[::3]",
    "V[1:-1]",
    "V[1:]",
    "V[::-1]",
    "V[-(len(V) // 2):]",
    "V[len(V) - len(V) // 2:][::-1]",
    "V[min(len(V) // 2, 3 + len(V) // 5):]",
    "V[:max(len(V) // 3, len(W) // 4)]",
    "V[len(V) % 3:]",
    "V[k % (len(V) + 1):]",
    "V[len(W) // 7:]",
]
JOINED = [
    "np.concatenate([P, Q])",
    "np.concatenate([P, Q])[::2]",
    "np.concatenate([P, Q, P])[::3]",
    "np.stack([P, P]).reshape(-1)[len(V) // 2:]",
    "np.repeat(P, 2)[::2]",
    "np.pad(P, (1, len(W) // 9))[1:]",
    "np.append(P, len(V) // 2.0)",
    "np.stack([P, P], 1).T.reshape(-1)[::2]",
    "np.roll(P, len(V) // 2)",
]
USES = ["V = V * 2", "V = V + 1", "V += 1", "k = k + len(V) // 2", "V[len(V) // 2:] = 3", "V = V - len(V) % 4"]


class Generator:
    """The source of one program, and its arguments at several sizes."""

    def __init__(self, seed, most=14):
        self.random = random.Random(seed)
        self.sizes = range(3)
        self.steps = self.random.randint(4, most)
        self.favourites = self.random.sample(PARTS, 3)

    def part(self, v, w):
        text = self.random.choice(self.favourites if self.random.random() < 0.7 else PARTS)
        return text.replace("V", v).replace("W", w)

    def source(self):
        pick, lines = self.random.choice, ["r = []"]
        names = ["a", "b"]
        for _ in range(self.steps):
            v, w = pick(names[-2:]), pick(names[:2])
            text = self.part(v, w)
            if self.random.random() < 0.3:
                text = pick(JOINED).replace("P", text).replace("Q", self.part(v, w)).replace("V", v).replace("W", w)
            if len(names) < 4 and self.random.random() < 0.3:
                names.append(f"v{len(names)}")
                v = names[-1]
            lines.append(f"{v} = {text}")
            if self.random.random() < 0.5:
                lines.append(pick(USES).replace("V", v))
            if self.random.random() < 0.2:
                lines.append(f"r.append({v})")
        lines.append(f"return k, r, {', '.join(dict.fromkeys(names))}")
        return "import numpy as np\n\n\ndef program(a, b, k):\n" + "".join(f"    {line}\n" for line in lines)

    def arguments(self, size, seed, np):
        """The arguments of a call. Each call of one number has equal ones."""
        r = random.Random(f"{seed} {size}")
        first, second = r.choice([0, 1, 2, 7, 64, 100, 1000, 3001, 20000]), r.choice([0, 1, 5, 33, 500])
        return np.arange(first) / 4, np.arange(second) / 2 - 3, 3 * size
