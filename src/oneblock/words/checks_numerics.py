"""Words for the checks of the range of numbers, and of wasted work."""

CHECKS_OF_NUMERICS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB307": (
        (
            "Masks fit into 16 bits",
            "A constant such as -1e9 in float16; finfo.min plus a negative score, which is -inf.",
            "pytorch/benchmark#794; huggingface/transformers#17306.",
            "The module runs in float16, texts padded on the left, scores enlarged to 100; weights must stay "
            "numbers wherever they are in float64.",
            "Sums that are -inf where something else is visible.",
            "Join masks as booleans and fill once, in the dtype of the scores.",
        ),
        (
            "掩码不超出 16 位",
            "float16 中的 -1e9 一类常数；finfo.min 加负分数得 -inf。",
            "pytorch/benchmark#794；huggingface/transformers#17306。",
            "在 float16 中运行，文本左侧填充，分数放大到 100；凡 float64 中是数的权重必须仍是数。",
            "同行仍有可见键时的 -inf。",
            "用布尔值合并掩码，按分数的类型只填充一次。",
        ),
    ),
    "OB308": (
        (
            "A softmax by hand subtracts the maximum",
            "exp(scores) / exp(scores).sum(): infinite from scores of 89 on in float32.",
            "Softmax as textbooks print it.",
            "Scores are enlarged to 200 in float32; the weights must stay finite.",
            "Scores that are capped below.",
            "torch.softmax.",
        ),
        (
            "手写的 softmax 减去最大值",
            "exp(scores) / exp(scores).sum()：在 float32 中分数达到 89 便无穷大。",
            "教科书里的 softmax 公式。",
            "在 float32 中把分数放大到 200，权重必须有限。",
            "被限制在更小范围内的分数。",
            "torch.softmax。",
        ),
    ),
    "OB309": (
        (
            "Numbers fit into 16 bits",
            "An operation whose result is too large for float16 (65,504), or for bfloat16.",
            "huggingface/transformers#5651: a feed-forward output of 66,246.",
            "The module as it is runs in float16 and bfloat16; the first result that is not finite where "
            "float64's is, is named.",
            "-inf from masks; steps that are computed in float32.",
            "Keep the named step in float32, or use bfloat16.",
        ),
        (
            "数值不超出 16 位",
            "结果超出 float16（65,504）或 bfloat16 范围的运算。",
            "huggingface/transformers#5651：前馈输出 66,246。",
            "模块原样以 float16 与 bfloat16 运行；指出第一个在 float64 中有限而在此非有限的结果。",
            "掩码的 -inf；以 float32 计算的步骤。",
            "让所指步骤保持 float32，或使用 bfloat16。",
        ),
    ),
    "OB310": (
        (
            "Attention starts neither one-hot nor for ever flat",
            "Scores so large at the start that one key takes all; scores that depend on nothing.",
            "Unscaled scores of wide heads.",
            "The mean of each row's largest weight at the start (above 0.95); weights that are equal although all"
            " weights of the model were moved.",
            "Rows that see fewer than four keys.",
            "Scale scores; start projections smaller.",
        ),
        (
            "注意力初始时既不独热，也不永远均匀",
            "初始分数过大，一个键独占；或分数不依赖任何东西。",
            "宽头而不缩放的分数。",
            "初始时各行最大权重的平均（高于 0.95）；移动模型全部权重后权重仍然相等。",
            "可见键少于四个的行。",
            "缩放分数；用更小的值初始化投影。",
        ),
    ),
    "OB901": (
        (
            "Weights are asked for only where they are read",
            "need_weights=True, the default of nn.MultiheadAttention, and its weights thrown away.",
            "lyuwenyu/RT-DETR issue 678: nine kernels instead of three.",
            "The mean over heads of the weights is computed in a run, and no later operation and no output holds it.",
            "Weights that are returned or read.",
            "need_weights=False.",
        ),
        (
            "只在使用时才要求权重",
            "nn.MultiheadAttention 默认 need_weights=True，而权重被丢弃。",
            "lyuwenyu/RT-DETR issue 678：九个内核而不是三个。",
            "一次运行中计算了各头权重的平均，而其后的运算与输出都未使用。",
            "被返回或使用的权重。",
            "need_weights=False。",
        ),
    ),
    "OB902": (
        (
            "A mask is built once",
            "tril or triu in every layer's forward.",
            "Hand-written attention.",
            "The same line makes the same triangle in several modules of one run.",
            "Masks that differ between layers.",
            "Build it once and hand it on; or is_causal=True.",
        ),
        (
            "掩码只构造一次",
            "每层前向都调用 tril 或 triu。",
            "手写的注意力。",
            "一次运行中同一行在多个模块里造出同一个三角。",
            "各层不同的掩码。",
            "构造一次并传递；或 is_causal=True。",
        ),
    ),
    "OB903": (
        (
            "Attention uses a fused kernel",
            "Scores, softmax and product written out where nothing but scale, mask and dropout happens.",
            "Hand-written attention.",
            "The operations from q·k to the values in a run, and whether the answer holds weights.",
            "Soft caps, weights that are returned, learned temperatures.",
            "scaled_dot_product_attention.",
        ),
        (
            "注意力使用融合内核",
            "除缩放、掩码与 dropout 外别无他事，却逐步写出分数、softmax 与乘积。",
            "手写的注意力。",
            "一次运行中从 q·k 到值的运算，以及输出是否含权重。",
            "软上限、被返回的权重、可学习的温度。",
            "scaled_dot_product_attention。",
        ),
    ),
}
