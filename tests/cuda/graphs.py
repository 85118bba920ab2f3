"""Texts of graphs that together reach every variant of a CUDA kernel, every operation and every dtype.

`groups(…)` returns name -> [(graph name, text)]; `compile_only()` returns those that are too large to run in a
test.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CLASSES = {
    "bool": "bool",
    **{f"i{bits}": "int" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": "uint" for bits in (8, 16, 32, 64)},
    **{name: "float" for name in ("f16", "bf16", "f32", "f64")},
    **{f"c{bits}": "complex" for bits in (64, 128)},
}
COLUMNS = ["bool", "int", "uint", "float", "complex"]
FLOATS = ["f16", "bf16", "f32", "f64"]


def split_arguments(text):
    """The arguments of a macro call, split at the commas that are not inside parentheses."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def rows(kind):
    table = (ROOT / "csrc" / "ir" / "ops.def").read_text()
    return [
        split_arguments(args) for args in re.findall(rf"^{kind}\((.*)\)(?:\s*/\*.*)?$", table, re.M)
    ]


def result_dtype(rule, dtype):
    if rule in ("boolean", "compared"):
        return "bool"
    return {"c64": "f32", "c128": "f64"}[dtype] if rule == "real" else dtype


def graph(inputs, lines, results, symbols=""):
    """Text of a graph: inputs are types, lines are (type, call) pairs numbered in order."""
    parameters = ", ".join(f"in{k}: {type_}" for k, type_ in enumerate(inputs))
    body = "".join(f"  %{k}: {type_} = {call}\n" for k, (type_, call) in enumerate(lines))
    return f"{symbols}graph f({parameters}) {{\n{body}  return {', '.join(results)}\n}}\n"


def in_chunks(items, size):
    return [items[k : k + size] for k in range(0, len(items), size)]


def pointwise_ops(dtype):
    """(name, arity, result dtype) of each operation that is defined for a dtype."""
    found = []
    for name, arity, rule, *texts in rows("POINTWISE"):
        if texts[COLUMNS.index(CLASSES[dtype])] != "NONE":
            found.append((name, int(arity), result_dtype(rule, dtype)))
    if dtype in FLOATS:
        found += [(name, int(arity), dtype) for name, arity, _ in rows("MATH")]
    return found


def pointwise(dtype):
    texts = []
    for number, ops in enumerate(in_chunks(pointwise_ops(dtype), 12)):
        lines = [
            (f"{out}[1003]", f"{name}({', '.join(['in0', 'in1', 'in0'][:arity])})")
            for name, arity, out in ops
        ]
        lines.append((f"{dtype}[1003]", "where(in2, in0, in1)"))
        inputs = [f"{dtype}[1003]"] * 2 + ["bool[1003]"]
        texts.append(
            (
                f"pointwise_{dtype}_{number}",
                graph(inputs, lines, [f"%{k}" for k in range(len(lines))]),
            )
        )
    return texts


def casts(dtype):
    others = [other for other in CLASSES if other != dtype]
    lines = [(f"{other}[8,256]", "cast(in0)") for other in others]
    return [
        (f"casts_{dtype}", graph([f"{dtype}[8,256]"], lines, [f"%{k}" for k in range(len(lines))]))
    ]


# Shapes and reduced axes: long and short rows, odd lengths, columns, all axes, few points, inner points.
FOLDS = [
    ("64,1024", "1"),
    ("7,33", "1"),
    ("500,5", "1"),
    ("1000,96", "0"),
    ("96,1001", "0,1"),
    ("60000", "0"),
    ("70001", "0"),
    ("6,20,30", "0,2"),
    ("6,20,30", "1"),
    ("12,9000", "1"),
    ("20000,9", "0"),
    ("3,12000,2", "1"),
    ("2,3,4", "0"),
]
# One for each way to distribute a reduction: one block per row, one warp per row, columns, and each of these split.
FEW_FOLDS = [(shape, axes) for shape, axes in FOLDS if shape in ("64,1024", "7,33", "1000,96", "70001", "12,9000", "20000,9")]


def kept(shape, axes):
    sizes = shape.split(",")
    return ",".join(size for k, size in enumerate(sizes) if str(k) not in axes.split(","))


def reductions(dtype, folds=FOLDS, alone=("f32", "i64", "c64")):
    names = []
    for name, combine in rows("REDUCE"):
        row = next(row for row in rows("POINTWISE") if row[0] == combine)
        is_truth = combine.startswith("logical")
        if row[3 + COLUMNS.index(CLASSES[dtype])] == "NONE" or is_truth != (
            dtype == "bool" and is_truth
        ):
            continue
        names.append(name)
    if CLASSES[dtype] != "complex":
        names += ["argmax", "argmin"]
    texts = []
    for shape, axes in folds:
        lines = []
        for name in names:
            out = "i64" if name.startswith("arg") else dtype
            if (
                name == "prod"
                and dtype not in ("bool",)
                and shape not in ("7,33", "500,5", "2,3,4")
            ):
                continue
            lines.append(
                (f"{out}[{kept(shape, axes)}]", f"{name}(in0, axes=[{axes.replace(',', ', ')}])")
            )
        text = graph([f"{dtype}[{shape}]"], lines, [f"%{k}" for k in range(len(lines))])
        texts.append((f"fold_{dtype}_{shape.replace(',', 'x')}_{axes.replace(',', '_')}", text))
        if dtype in alone and shape in (
            "12,9000",
            "20000,9",
            "70001",
        ):  # one at a time, so that there is no other operation to fuse with
            for k, line in enumerate(lines):
                texts.append(
                    (
                        f"fold_{dtype}_{shape.replace(',', 'x')}_alone_{k}",
                        graph([f"{dtype}[{shape}]"], [line], ["%0"]),
                    )
                )
    return texts


def scans(dtype):
    names = ["cumsum", "cumprod"] + ([] if CLASSES[dtype] == "complex" else ["cummax", "cummin"])
    lines = [
        (f"{dtype}[{shape}]", f"{name}({source}, axes=[{axis}])")
        for shape, source, axis in (("40,12", "in0", 0), ("40,12", "in0", 1), ("9", "in1", 0))
        for name in names
    ]
    return [
        (
            f"scan_{dtype}",
            graph([f"{dtype}[40,12]", f"{dtype}[9]"], lines, [f"%{k}" for k in range(len(lines))]),
        )
    ]


def softmax(rows_, columns, dtype="f32", symbols=""):
    full, one, kept_ = f"{dtype}[{rows_},{columns}]", f"{dtype}[{rows_},1]", f"{dtype}[{rows_}]"
    return graph(
        [full],
        [
            (kept_, "max(in0, axes=[1])"),
            (one, "reshape(%0)"),
            (full, "subtract(in0, %1)"),
            (full, "exp(%2)"),
            (kept_, "sum(%3, axes=[1])"),
            (one, "reshape(%4)"),
            (full, "divide(%3, %5)"),
        ],
        ["%6"],
        symbols,
    )


def column_norm(rows_, columns, dtype="f32", symbols=""):
    full, kept_ = f"{dtype}[{rows_},{columns}]", f"{dtype}[{columns}]"
    return graph(
        [full, f"{dtype}[]"],
        [
            (kept_, "sum(in0, axes=[0])"),
            (kept_, "divide(%0, in1)"),
            (full, "subtract(in0, %1)"),
            (full, "multiply(%2, %2)"),
            (kept_, "sum(%3, axes=[0])"),
            (kept_, "divide(%4, in1)"),
            (kept_, "sqrt(%5)"),
            (full, "divide(%2, %6)"),
        ],
        ["%7"],
        symbols,
    )


def layer_norm(rows_, columns, dtype="f32"):
    full, one, kept_ = f"{dtype}[{rows_},{columns}]", f"{dtype}[{rows_},1]", f"{dtype}[{rows_}]"
    return graph(
        [full, f"{dtype}[{columns}]", f"{dtype}[]"],
        [
            (kept_, "sum(in0, axes=[1])"),
            (kept_, "divide(%0, in2)"),
            (one, "reshape(%1)"),
            (full, "subtract(in0, %2)"),
            (full, "multiply(%3, %3)"),
            (kept_, "sum(%4, axes=[1])"),
            (kept_, "divide(%5, in2)"),
            (kept_, "sqrt(%6)"),
            (one, "reshape(%7)"),
            (full, "divide(%3, %8)"),
            (full, "multiply(%9, in1)"),
            (full, "tanh(%10)"),
        ],
        ["%11"],
    )


def rows_of_everything():
    texts = []
    for rows_, columns in (
        (512, 8192),
        (33, 16384),
        (70, 1000),
        (5, 40000),
        (300, 77),
        (2000, 32),
        (4, 3),
        (9, 30000),
    ):
        texts.append((f"softmax_{rows_}x{columns}", softmax(rows_, columns)))
        texts.append((f"layer_norm_{rows_}x{columns}", layer_norm(rows_, columns)))
    for rows_, columns in ((4096, 100), (100, 512), (40, 40), (3, 1000), (30000, 16), (2000, 2048)):
        texts.append((f"column_norm_{rows_}x{columns}", column_norm(rows_, columns)))
    for dtype in ("f16", "f64"):
        texts.append((f"softmax_{dtype}", softmax(64, 2048, dtype)))
        texts.append((f"layer_norm_{dtype}", layer_norm(64, 2048, dtype)))
        texts.append((f"column_norm_{dtype}", column_norm(200, 64, dtype)))
    return texts


def symbolic():
    two = "symbols {s0 in [0, inf), s1 in [0, inf)}\n"
    full = "f32[s0,s1]"
    return [
        ("symbolic_softmax", softmax("s0", "s1", symbols=two)),
        ("symbolic_column_norm", column_norm("s0", "s1", symbols=two)),
        (
            "symbolic_pointwise",
            graph(
                [full, "f32[s1]", "f32[s0,1]"],
                [(full, "multiply(in0, in1)"), (full, "add(%0, in2)")],
                ["%1"],
                two,
            ),
        ),
        (
            "symbolic_sum",
            graph([full], [("f32[]", "sum(in0, axes=[0, 1])"), ("f32[]", "sqrt(%0)")], ["%1"], two),
        ),
        (
            "symbolic_columns",
            graph(
                [full],
                [("f32[s1]", "sum(in0, axes=[0])"), ("i64[s1]", "argmax(in0, axes=[0])")],
                ["%0", "%1"],
                two,
            ),
        ),
        (
            "symbolic_transpose",
            graph(
                [full],
                [
                    ("f32[s1,s0] order [1,0]", "permute(in0, axes=[1, 0])"),
                    ("f32[s1,s0] order [1,0]", "negative(%0)"),
                ],
                ["%1"],
                two,
            ),
        ),
    ]


def with_nan(shape, axes):
    kept_ = kept(shape, axes)
    full = f"f32[{shape}]"
    return graph(
        [full],
        [
            ("f32[]", "const 1.0"),
            (full, "subtract(in0, %0)"),
            (full, "sqrt(%1)"),
            (f"f32[{kept_}]", f"max(%2, axes=[{axes}])"),
            (f"i64[{kept_}]", f"argmax(%2, axes=[{axes}])"),
            (f"i64[{kept_}]", f"argmin(%2, axes=[{axes}])"),
            (f"f32[{kept_}]", f"fmin_reduce(%2, axes=[{axes}])"),
            (f"f32[{kept_}]", f"sum(%2, axes=[{axes}])"),
        ],
        ["%3", "%4", "%5", "%6", "%7"],
    )


def various():
    image = "f32[64,96]"
    inner = "f32[62,94]"
    slices = [
        (inner, f"slice(in0, starts=[{i}, {j}], steps=[1, 1])")
        for i, j in ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    ]
    stencil = [
        *slices,
        (inner, "add(%0, %1)"),
        (inner, "add(%5, %2)"),
        (inner, "add(%6, %3)"),
        (inner, "add(%7, %4)"),
    ]
    return [
        ("stencil", graph([image], stencil, ["%8"])),
        (
            "flip_and_steps",
            graph(
                [image],
                [
                    (image, "slice(in0, starts=[63, 95], steps=[-1, -1])"),
                    ("f32[32,96]", "slice(%0, starts=[0, 0], steps=[2, 1])"),
                    ("f32[32,96]", "negative(%1)"),
                    ("f32[96,32] order [1,0]", "permute(%2, axes=[1, 0])"),
                    ("f32[96]", "sum(%3, axes=[1])"),
                ],
                ["%2", "%4"],
            ),
        ),
        (
            "transpose",
            graph(
                ["f32[100,300]", "f32[300,100]"],
                [
                    ("f32[300,100] order [1,0]", "permute(in0, axes=[1, 0])"),
                    ("f32[300,100]", "add(%0, in1)"),
                ],
                ["%1"],
            ),
        ),
        (
            "outer",
            graph(
                ["f64[200]", "f64[300]"],
                [("f64[200,1]", "reshape(in0)"), ("f64[200,300]", "multiply(%0, in1)")],
                ["%1"],
            ),
        ),
        (
            "concat",
            graph(
                ["f32[30,40]", "f32[20,40]"],
                [("f32[50,40]", "concat(in0, in1, axis=0)"), ("f32[50,40]", "exp(%0)")],
                ["%1"],
            ),
        ),
        (
            "rbf",
            graph(
                ["f32[100,64]", "f32[90,64]"],
                [
                    ("f32[100,1,64]", "reshape(in0)"),
                    ("f32[1,90,64]", "reshape(in1)"),
                    ("f32[100,90,64]", "subtract(%0, %1)"),
                    ("f32[100,90,64]", "multiply(%2, %2)"),
                    ("f32[100,90]", "sum(%3, axes=[2])"),
                    ("f32[100,90]", "exp(%4)"),
                ],
                ["%5"],
            ),
        ),
        (
            "nearest",
            graph(
                ["f32[3000,3]", "f32[16,3]"],
                [
                    ("f32[3000,1,3]", "reshape(in0)"),
                    ("f32[1,16,3]", "reshape(in1)"),
                    ("f32[3000,16,3]", "subtract(%0, %1)"),
                    ("f32[3000,16,3]", "square(%2)"),
                    ("f32[3000,16]", "sum(%3, axes=[2])"),
                    ("i64[3000]", "argmin(%4, axes=[1])"),
                ],
                ["%5"],
            ),
        ),
        (
            "fortran",
            graph(
                ["f32[60,50] strides [1,60]", "f32[60,50] strides [1,60]"],
                [
                    ("f32[60,50] order [1,0]", "multiply(in0, in1)"),
                    ("f32[60]", "sum(%0, axes=[1])"),
                ],
                ["%0", "%1"],
            ),
        ),
        (
            "scalars",
            graph(
                ["f32[1000]", "python f64[]", "python i64[]", "c64[1000]", "python c128[]"],
                [
                    ("f32[]", "cast(in1)"),
                    ("f32[]", "cast(in2)"),
                    ("f32[1000]", "multiply(in0, %0)"),
                    ("f32[1000]", "add(%2, %1)"),
                    ("c64[]", "cast(in4)"),
                    ("c64[1000]", "multiply(in3, %4)"),
                ],
                ["%3", "%5"],
            ),
        ),
        ("one_number", graph(["f64[]", "f64[]"], [("f64[]", "add(in0, in1)")], ["%0"])),
        (
            "empty",
            graph(
                ["f32[0]", "f32[4,0]", "f32[0,4]"],
                [
                    ("f32[0]", "exp(in0)"),
                    ("f32[4]", "sum(in1, axes=[1])"),
                    ("f32[4]", "sum(in2, axes=[0])"),
                    ("f32[]", "sum(in0, axes=[0])"),
                ],
                ["%0", "%1", "%2", "%3"],
            ),
        ),
        (
            "mixed_widths",
            graph(
                ["u8[4096]", "f64[4096]", "f16[4096]"],
                [
                    ("f64[4096]", "cast(in0)"),
                    ("f64[4096]", "cast(in2)"),
                    ("f64[4096]", "multiply(%0, in1)"),
                    ("f64[4096]", "add(%2, %1)"),
                    ("f16[4096]", "cast(%3)"),
                    ("bool[4096]", "less(in1, %3)"),
                ],
                ["%3", "%4", "%5"],
            ),
        ),
        (
            "in_place",
            """graph f(in0: f32[1000], in1: f32[1000]) {
  %0: f32[998] = slice(in0, starts=[1], steps=[1])
  %1: f32[998] = slice(in1, starts=[0], steps=[1])
  %2: f32[998] = add(%0, %1)
  %3: f32[1000] = assign(in0, %0, %2)
  write in0 = %3
  return %3
}
""",
        ),
        (
            "in_place_shifted",
            """graph f(in0: f32[64,100]) {
  %0: f32[64,99] = slice(in0, starts=[0, 1], steps=[1, 1])
  %1: f32[64,99] = slice(in0, starts=[0, 0], steps=[1, 1])
  %2: f32[64,99] = add(%0, %1)
  %3: f32[64,100] = assign(in0, %0, %2)
  write in0 = %3
  return %2
}
""",
        ),
        *[
            (f"nan_{shape.replace(',', 'x')}", with_nan(shape, axes))
            for shape, axes in (("40,1000", "1"), ("1000,40", "0"), ("60001", "0"), ("300,7", "1"))
        ],
        (
            "misaligned",
            graph(
                ["f32[4097]"],
                [("f32[4096]", "slice(in0, starts=[1], steps=[1])"), ("f32[4096]", "sqrt(%0)")],
                ["%1"],
            ),
        ),
    ]


def groups(everything):
    """The groups of graphs. Unless `everything` is set, all shapes of reductions are only tested for one dtype of
    each kind and width: the code that distributes work does not depend on the arithmetic.
    """
    made = {"various": various(), "rows": rows_of_everything(), "symbolic": symbolic()}
    for dtype in CLASSES:
        made[f"pointwise_{dtype}"] = pointwise(dtype) + casts(dtype)
        if everything or dtype in ("bool", "i64", "u8", "f16", "bf16", "f32", "c64"):
            of_all = everything or dtype in ("i64", "f32", "c64")
            folds = (FOLDS if of_all else FEW_FOLDS), (("f32", "i64", "c64") if everything else ("f32", "c64"))
            made[f"fold_{dtype}"] = reductions(dtype, *folds) + (scans(dtype) if dtype != "bool" else [])
    return made


def compile_only():
    return [
        (
            "huge",
            graph(
                ["f32[3000000000]", "f32[3000000000]"],
                [("f32[3000000000]", "multiply(in0, in1)")],
                ["%0"],
            ),
        ),
        ("huge_sum", graph(["f32[70000,70000]"], [("f32[]", "sum(in0, axes=[0, 1])")], ["%0"])),
        (
            "huge_rows",
            graph(["f64[3000000,2000]"], [("f64[3000000]", "sum(in0, axes=[1])")], ["%0"]),
        ),
        (
            "huge_columns",
            graph(["f64[3000000,2000]"], [("f64[2000]", "max(in0, axes=[0])")], ["%0"]),
        ),
    ]
