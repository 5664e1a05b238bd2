"""Words for how bricks are joined and limited: residual, wirings, masks, dropout, activations."""

from oneblock.words.entry import Entry

JOINTS: dict[str, Entry] = {
    "residual": Entry(
        ("Residual", "Adds what a sublayer found to the stream it read: a sublayer learns an increment."),
        ("残差", "把子层的结果加回它读入的残差流：子层只学增量。"),
        "+",
        "x + f(x)",
        r"x + f(x)",
    ),
    "dropout": Entry(
        ("Dropout", "In training, sets random features to zero and scales the rest up, so that none is relied on."),
        ("随机失活", "训练时随机把一部分特征置零，其余放大，使模型不依赖任何单个特征。"),
        "D",
        "x ⊙ m / (1 − p),  m ~ Bernoulli(1 − p)",
        r"x \odot m / (1 - p),\quad m \sim \mathrm{Bernoulli}(1 - p)",
    ),
    "wiring.pre": Entry(
        ("Pre-norm", "Norms what a sublayer reads; the stream itself is never normed on its way up."),
        ("前置归一化", "只归一化子层读入的内容，残差流一路向上不被归一化。"),
        formula="x ← x + f(norm(x))",
        latex=r"x \leftarrow x + f(\mathrm{norm}(x))",
    ),
    "wiring.post": Entry(
        ("Post-norm", "Norms the stream after every addition, as in 2017."),
        ("后置归一化", "每次相加之后归一化残差流，2017 年的做法。"),
        formula="x ← norm(x + f(x))",
        latex=r"x \leftarrow \mathrm{norm}(x + f(x))",
    ),
    "wiring.branch": Entry(
        ("Branch norm", "Norms what a sublayer adds, before it is added."),
        ("支路归一化", "在相加之前归一化子层的输出。"),
        formula="x ← x + norm(f(x))",
        latex=r"x \leftarrow x + \mathrm{norm}(f(x))",
    ),
    "wiring.sandwich": Entry(
        ("Sandwich norm", "Norms both what a sublayer reads and what it adds."),
        ("夹心归一化", "子层的输入和输出都归一化。"),
        formula="x ← x + norm(f(norm(x)))",
        latex=r"x \leftarrow x + \mathrm{norm}(f(\mathrm{norm}(x)))",
    ),
    "wiring.parallel": Entry(
        ("Parallel", "Attention and feed-forward read the same stream side by side, each through its own norm."),
        ("并行接法", "注意力和前馈网络并排读同一残差流，各有自己的归一化。"),
        formula="x ← x + attention(norm₁(x)) + ffn(norm₂(x))",
        latex=r"x \leftarrow x + \mathrm{attn}(\mathrm{norm}_1(x)) + \mathrm{ffn}(\mathrm{norm}_2(x))",
    ),
    "wiring.parallel-shared": Entry(
        ("Parallel, shared norm", "Attention and feed-forward read the same stream side by side, through one norm."),
        ("并行接法（共用归一化）", "注意力和前馈网络并排读同一残差流，共用一个归一化。"),
        formula="n = norm(x);  x ← x + attention(n) + ffn(n)",
        latex=r"n = \mathrm{norm}(x),\quad x \leftarrow x + \mathrm{attn}(n) + \mathrm{ffn}(n)",
    ),
    "wiring.bare": Entry(
        ("Without norm", "No norm anywhere in the block: for experiments on what norms do."),
        ("无归一化", "块中没有任何归一化：用来实验归一化的作用。"),
        formula="x ← x + f(x)",
        latex=r"x \leftarrow x + f(x)",
    ),
    "Full": Entry(
        ("Full mask", "Every query sees every key."),
        ("全可见掩码", "每个查询都能看到所有的键。"),
        formula="allowed(i, j) = true",
        latex=r"M_{ij} = 0",
    ),
    "Causal": Entry(
        ("Causal mask", "A query sees its own place and those before it, so training never shows the future."),
        ("因果掩码", "查询只能看到自己和之前的位置，训练时不会看到未来。"),
        formula="allowed(i, j) = j ≤ i",
        latex=r"M_{ij} = 0 \text{ if } j \le i, \text{ else } -\infty",
    ),
    "Window": Entry(
        ("Window mask", "A query sees only keys that stand near it."),
        ("窗口掩码", "查询只能看到附近的键。"),
        formula="allowed(i, j) = i − back < j ≤ i + ahead",
        latex=r"M_{ij} = 0 \text{ if } i - b < j \le i + a, \text{ else } -\infty",
    ),
    "Every": Entry(
        ("Combined mask", "A query sees a key only if all of its rules allow it."),
        ("组合掩码", "只有全部规则都允许时，查询才能看到键。"),
        formula="allowed(i, j) = all rules(i, j)",
        latex=r"M = \sum_r M^{(r)}",
    ),
    "relu": Entry(
        ("ReLU", "Keeps what is positive, sets the rest to zero."),
        ("ReLU", "保留正值，其余置零。"),
        "ReLU",
        "max(0, x)",
        r"\max(0, x)",
    ),
    "gelu": Entry(
        ("GELU", "Keeps a value in proportion to how rarely a normal variable exceeds it."),
        ("GELU", "按标准正态变量小于该值的概率保留它。"),
        "GELU",
        "x Φ(x)",
        r"x\,P(Z \le x),\; Z \sim \mathcal{N}(0, 1)",
    ),
    "gelu_tanh": Entry(
        ("GELU, by tanh", "GELU through its tanh approximation."),
        ("GELU（tanh 近似）", "用 tanh 近似计算的 GELU。"),
        "GELU",
        "x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))",
        r"\tfrac{x}{2}\bigl(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3))\bigr)",
    ),
    "silu": Entry(
        ("SiLU", "Multiplies a value by its own sigmoid."),
        ("SiLU", "把值乘以它自己的 sigmoid。"),
        "SiLU",
        "x / (1 + e^(−x))",
        r"x / (1 + e^{-x})",
    ),
    "tanh": Entry(
        ("tanh", "Squeezes a value into the range from -1 to 1."),
        ("tanh", "把值压到 -1 与 1 之间。"),
        "tanh",
        "tanh(x)",
        r"\tanh(x)",
    ),
}
