"""Words for numbers that leave their range, and for wasted work."""

NUMERICS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "mask.constant": (
        (
            "A constant does not fit into float16: {said}.",
            "Fill with -inf or torch.finfo(scores.dtype).min, which follow the dtype.",
        ),
        ("有常数超出 float16 的范围：{said}。", "用 -inf 或 torch.finfo(scores.dtype).min 填充：它们随类型而变。"),
    ),
    "mask.sum": (
        (
            "In float16 a mask and a score add up to -inf, and rows of nothing else become nan (places: {places}).",
            "Join masks as booleans, fill once, and run the softmax in float32.",
        ),
        (
            "在 float16 中掩码与分数相加得 -inf，整行如此便成为 nan（共 {places} 处）。",
            "用布尔值合并掩码，只填充一次，并以 float32 计算 softmax。",
        ),
    ),
    "softmax.maximum": (
        (
            "The softmax is written without subtracting each row's maximum: with scores around "
            "{score} it gives nan or inf "
            "in float32 (places: {places}).",
            "Use torch.softmax, or subtract scores.amax(-1, keepdim=True) before exp.",
        ),
        (
            "手写的 softmax 没有减去每行的最大值：分数约为 {score} 时在 float32 中得到 nan 或 inf（共 {places} 处）。",
            "使用 torch.softmax，或在 exp 之前减去 scores.amax(-1, keepdim=True)。",
        ),
    ),
    "half.overflow": (
        (
            "{dtype} overflows first in {operation}: numbers reach {peak}, the largest that fits is {largest}.",
            "Keep this module in float32, clamp, or scale its weights; bfloat16 has the range of float32.",
        ),
        (
            "{dtype} 首先在 {operation} 处溢出：数值达到 {peak}，而能表示的最大值为 {largest}。",
            "让该模块保持 float32、截断，或缩小其权重；bfloat16 的范围与 float32 相同。",
        ),
    ),
    "half.lost": (
        (
            "In {dtype} {operation} gives numbers that are not finite, where float64 gives at most {peak} "
            "(the largest that fits is {largest}).",
            "Compute this step in float32: squares, sums and exponentials leave the range of 16 bits first.",
        ),
        (
            "在 {dtype} 中 {operation} 得到非有限的数，而 float64 中最大仅为 {peak}（能表示的最大值为 {largest}）。",
            "用 float32 计算这一步：平方、求和与指数最先超出 16 位的范围。",
        ),
    ),
    "attention.weights_unused": (
        (
            "nn.MultiheadAttention is asked for weights that nobody reads (need_weights=True is its default), "
            "so it cannot use its fused kernel (places: {places}).",
            "Call it with need_weights=False.",
        ),
        (
            "要求 nn.MultiheadAttention 返回权重却无人使用（默认 need_weights=True），"
            "因此无法使用融合内核（共 {places} 处）。",
            "调用时给出 need_weights=False。",
        ),
    ),
    "mask.rebuilt": (
        (
            "The same triangle is built in {places} modules of one forward pass.",
            "Build the mask once per forward pass and hand it on, or use is_causal=True.",
        ),
        (
            "一次前向计算中有 {places} 个模块各自构造同一个三角掩码。",
            "每次前向只构造一次并向下传递，或使用 is_causal=True。",
        ),
    ),
    "attention.unfused": (
        (
            "Attention is written out although a fused kernel could do it (places: {places}): the "
            "whole matrix of weights "
            "is kept in memory.",
            "Use torch.nn.functional.scaled_dot_product_attention.",
        ),
        (
            "注意力是逐步写出的，而融合内核即可完成（共 {places} 处）：整个权重矩阵都占用内存。",
            "使用 torch.nn.functional.scaled_dot_product_attention。",
        ),
    ),
}
