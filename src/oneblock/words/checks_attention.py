"""Words for the checks of how scores become weights."""

CHECKS_OF_ATTENTION: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB301": (
        (
            "Scores are scaled by 1/sqrt(head_dim)",
            "A scale that is missing, applied twice, multiplied instead of divided, or taken from the model's width.",
            "vit-pytorch issue 65; mlc-llm PR 3426 (cosine to the original .862 before, .999989 after).",
            "The factor between q·k and the scores is fitted to the numbers of a run, and what queries and keys "
            "were multiplied with before is traced; rotations are seen through.",
            "Learned temperatures; normalised queries and keys; a factor that the configuration names; no scale "
            "beside learned relative biases, or where query weights start smaller by 1/sqrt(head_dim).",
            "Divide q·k by sqrt(head_dim), once.",
        ),
        (
            "分数按 1/sqrt(head_dim) 缩放",
            "缺少缩放、缩放两次、该除却乘、或取了模型宽度。",
            "vit-pytorch issue 65；mlc-llm PR 3426（修正前与原模型余弦 .862，之后 .999989）。",
            "由一次运行的数值拟合 q·k 与分数之间的系数，并追溯查询与键此前乘过的数；旋转不影响判断。",
            "可学习的温度；归一化的查询与键；配置中写明的系数；带可学习相对偏置、或查询权重初始值小 1/sq"
            "rt(head_dim) 倍而不缩放的模型。",
            "把 q·k 除以 sqrt(head_dim)，只除一次。",
        ),
    ),
    "OB302": (
        (
            "Keys are hidden before the softmax",
            "A mask multiplied onto the weights, with or without dividing by their sum again.",
            "memory-compressed-attention issue 2; introductions that multiply weights with 0 and 1.",
            "Weights that the softmax gave to hidden keys and that are 0 where values are summed; sums of rows "
            "tell whether they were divided again.",
            "Masks before and after; masks of whole heads; a choice of keys that is no mask.",
            "scores.masked_fill(hidden, -inf) before the softmax.",
        ),
        (
            "在 softmax 之前隐藏键",
            "把掩码乘到权重上，无论之后是否再除以其和。",
            "memory-compressed-attention issue 2；一些教程把权重乘以 0 和 1。",
            "softmax 给了被隐藏的键权重，而在对值求和时为 0；由各行之和判断是否又归一。",
            "前后都加掩码；遮蔽整个头；并非掩码的键选择。",
            "在 softmax 之前 scores.masked_fill(hidden, -inf)。",
        ),
    ),
    "OB303": (
        (
            "The softmax runs over keys",
            "softmax over queries, heads or the batch; F.softmax without dim.",
            "F.softmax(x) with its implicit axis.",
            "Weights must sum to 1 over the axis that values are summed over.",
            "Weights over another axis that are divided by their sums over keys.",
            "softmax(scores, dim=-1).",
        ),
        (
            "softmax 沿键的维进行",
            "沿查询、头或批次做 softmax；F.softmax 未给 dim。",
            "F.softmax(x) 的隐含维。",
            "权重在对值求和的那一维上之和必须为 1。",
            "沿其他维归一、又除以键上之和的权重。",
            "softmax(scores, dim=-1)。",
        ),
    ),
    "OB304": (
        (
            "Masks are the right way round",
            "A causal mask that hides the past; a padding mask whose True means the opposite of what its name "
            "promises.",
            "rasbt/LLMs-from-scratch#1061: a mask made for nn.MultiheadAttention, handed to "
            "scaled_dot_product_attention.",
            "Weights of a run; the form of each mask argument that really hides, beside what its name promises.",
            "Arguments whose name promises nothing (mask, src_mask); models that read backwards, told with --as "
            "encoder.",
            "Turn the mask round: ~mask.",
        ),
        (
            "掩码方向正确",
            "因果掩码隐藏了过去；填充掩码中 True 的含义与名称所示相反。",
            "rasbt/LLMs-from-scratch#1061：为 nn.MultiheadAttention 造的掩码交给了 scaled_dot_product_attention。",
            "一次运行的权重；每个掩码参数真正起隐藏作用的形式，与其名称所示对照。",
            "名称没有约定的参数（mask、src_mask）；用 --as encoder 说明的反向模型。",
            "取反掩码：~mask。",
        ),
    ),
    "OB305": (
        (
            "Masks of 0 and 1 are not added",
            "A float mask of zeros and ones, added to the scores as if it were 0 and -inf.",
            "pytorch/pytorch#136816: a float key_padding_mask of 0 and 1.",
            "What is added to the scores is nothing but zeros and ones, in the pattern of the future or of the "
            "padding.",
            "Learned biases; masks that are multiplied or compared.",
            "A boolean mask, or 0 and -inf.",
        ),
        (
            "不把 0 和 1 的掩码相加",
            "把由 0 和 1 组成的浮点掩码当作 0 与 -inf 加到分数上。",
            "pytorch/pytorch#136816：0 与 1 的浮点 key_padding_mask。",
            "加到分数上的只有 0 和 1，且形状恰为未来或填充。",
            "可学习的偏置；相乘或比较的掩码。",
            "布尔掩码，或 0 与 -inf。",
        ),
    ),
    "OB306": (
        (
            "Nothing outscores a mask",
            "Hidden keys filled with a finite number that scores can reach.",
            "minGPT issue 75; -1e4 in models of 2019.",
            "Weights of queries and keys are enlarged until scores reach 100 (error) or 30,000 (warning); hidden "
            "keys must get no weight.",
            "-inf, finfo.min, -1e9; scores that a cap or a norm bounds below the fill.",
            "Fill with -inf.",
        ),
        (
            "没有分数能超过掩码",
            "用分数可能达到的有限数填充被隐藏的键。",
            "minGPT issue 75；2019 年模型中的 -1e4。",
            "放大查询与键的权重，使分数达到 100（错误）或 30,000（警告）；被隐藏的键不得有权重。",
            "-inf、finfo.min、-1e9；被上限或归一化约束、达不到填充值的分数。",
            "用 -inf 填充。",
        ),
    ),
    "OB311": (
        (
            "Grouped heads read their own group",
            "Keys repeated as a whole (0 1 0 1) instead of each (0 0 1 1); keys one way and values the other.",
            "PrimeIntellect-ai/prime-rl#2681.",
            "Which heads read equal keys, and which equal values, in a run.",
            "One group for all heads; as many groups as heads.",
            "repeat_interleave along the axis of heads.",
        ),
        (
            "分组的头读取自己的组",
            "键整体重复（0 1 0 1）而不是逐个重复（0 0 1 1）；键与值的重复方式不同。",
            "PrimeIntellect-ai/prime-rl#2681。",
            "在一次运行中，哪些头读到相同的键，哪些读到相同的值。",
            "所有头共用一组；组数等于头数。",
            "沿头的维使用 repeat_interleave。",
        ),
    ),
    "OB312": (
        (
            "Dropout acts on weights, last",
            "Dropout on scores; weights divided by their sum after dropout.",
            "Hand-written attention.",
            "In train mode, what was drawn multiplies scores, or multiplies weights whose rows sum to 1 all the same.",
            "Dropout of whole keys by adding -inf.",
            "Softmax, then dropout, then the product with values.",
        ),
        (
            "dropout 最后作用于权重",
            "对分数做 dropout；dropout 之后又除以权重之和。",
            "手写的注意力。",
            "训练模式下，随机数乘到了分数上，或乘到权重上而各行之和仍为 1。",
            "以 -inf 丢弃整个键的做法。",
            "先 softmax，再 dropout，再与值相乘。",
        ),
    ),
}
