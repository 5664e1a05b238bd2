"""Words for the checks of positions."""

CHECKS_OF_POSITIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB601": (
        (
            "The order of tokens is known",
            "Positions that were never added, or were lost on the way.",
            "nn.Transformer fed with embeddings alone.",
            "Encoders: the text is turned round. Decoders: equal tokens at different "
            "places must differ somewhere, since a "
            "causal mask alone tells deeper layers the order.",
            "Modules that take vectors; decoders without positions on purpose (a note).",
            "Add positions to the embedding, or turn queries and keys by them.",
        ),
        (
            "词元的顺序是已知的",
            "位置从未加入，或在途中丢失。",
            "只输入词嵌入的 nn.Transformer。",
            "编码器：颠倒文本。解码器：不同位置上的相同词元必须在某处有差别，因为仅凭因果掩码，深层也能得知顺序。",
            "接受向量的模块；有意不用位置的解码器（提示）。",
            "在词嵌入上加位置，或按位置旋转查询与键。",
        ),
    ),
    "OB602": (
        (
            "Positions that are given are used",
            "position_ids accepted and ignored.",
            "Ports whose rotation counts from 0 whatever it is told.",
            "The same text with its positions in another order must get other answers.",
            "Modules that take no positions.",
            "Use them in the table or the rotation.",
        ),
        (
            "给出的位置会被使用",
            "position_ids 被接受却没有使用。",
            "无论得到什么都从 0 计数的移植版。",
            "同一文本换一种位置顺序，输出必须不同。",
            "不接受位置的模块。",
            "在位置表或旋转中使用它们。",
        ),
    ),
    "OB603": (
        (
            "A text padded on the left keeps its positions",
            "Positions that begin at the padding: batched generation goes wrong silently.",
            "GPT-2 in several libraries: one pad raises the loss from 4.5 to 13.6.",
            "A text padded on the left, with its mask, is compared with the text alone; "
            "a warning where position_ids from "
            "the caller mend it.",
            "A constant shift where only distances count (rotary, T5, ALiBi); encoders.",
            "(mask.cumsum(-1) - 1).clamp_min(0).",
        ),
        (
            "左侧填充的文本保持其位置",
            "位置从填充处开始计数：批量生成悄悄出错。",
            "若干库中的 GPT-2：一个填充使损失从 4.5 升到 13.6。",
            "把带掩码的左侧填充文本与原文本比较；若调用者给出 position_ids 即可修正，则为警告。",
            "只看距离的方法中整体平移（旋转位置、T5、ALiBi）；编码器。",
            "(mask.cumsum(-1) - 1).clamp_min(0)。",
        ),
    ),
    "OB604": (
        (
            "Positions survive low precision",
            "Angles counted in bfloat16, in which 257 is 256; frequencies cast with the model.",
            "LLaMA in bfloat16 until 2024; tables of cosines in float16, off by 0.78.",
            "One token 320 times, in bfloat16 and in float32: queries and keys may not be worse at late places than at "
            "early ones.",
            "Equal rounding at all places. An error where the module itself is in bfloat16, else a warning.",
            "Positions, frequencies and angles in float32.",
        ),
        (
            "位置经得起低精度",
            "用 bfloat16 计数的角度（257 等于 256）；随模型一起转换的频率。",
            "2024 年以前 bfloat16 的 LLaMA；float16 的余弦表，误差达 0.78。",
            "同一词元重复 320 次，分别用 bfloat16 与 float32：靠后位置的查询与键不得比开头更差。",
            "各处相同的舍入误差。模块本身为 bfloat16 时是错误，否则是警告。",
            "位置、频率与角度都用 float32。",
        ),
    ),
    "OB605": (
        (
            "Values are not turned",
            "Rotary positions applied to values as well.",
            "Ports that rotate the whole fused projection.",
            "One token again and again: its values must be equal at all places where their projections are.",
            "A configuration that says rotary_value.",
            "Turn queries and keys only.",
        ),
        (
            "值不被旋转",
            "旋转位置也用在了值上。",
            "把整个融合投影一起旋转的移植版。",
            "同一词元重复多次：投影相同的位置，值也必须相同。",
            "配置中写明 rotary_value。",
            "只旋转查询与键。",
        ),
    ),
    "OB606": (
        (
            "Queries and keys are turned alike",
            "One of them unturned, halves mixed with neighbours, a wrong sign, the other direction.",
            "Weights of one layout under the other's rotation.",
            "One token again and again: its scores may depend on distance only.",
            "Either layout, any base, scaled and partial rotations.",
            "One function for both.",
        ),
        (
            "查询与键的旋转一致",
            "其中一个没有旋转、前后两半与相邻两维混用、符号错误、方向相反。",
            "一种排列的权重配上另一种排列的旋转。",
            "同一词元重复多次：分数只能取决于距离。",
            "任一排列、任何底数、缩放或部分旋转。",
            "两者使用同一个函数。",
        ),
    ),
    "OB607": (
        (
            "The longest text has a position for every token",
            "A table one row short, positions that begin at 1, the last places clamped onto one row.",
            "Checkpoints that fail at exactly their stated length.",
            "The longest text that the module states is asked for; neighbouring places must differ.",
            "Tables that keep rows for padding; texts of more than 1,100 tokens are not tried.",
            "As many rows as tokens, from row 0 on.",
        ),
        (
            "最长文本的每个词元都有位置",
            "位置表少一行、位置从 1 开始、末尾几个位置被压到同一行。",
            "恰好在标称长度上失败的检查点。",
            "输入模块标称的最长文本；相邻位置必须有差别。",
            "为填充保留行的位置表；超过 1100 个词元的文本不测。",
            "行数等于词元数，从第 0 行开始。",
        ),
    ),
    "OB608": (
        (
            "Every sine has its cosine",
            "Sinusoidal tables whose sines and cosines have different speeds.",
            "Tutorials that compute the exponent with 2 * (i + 1) / dim for the cosines.",
            "A table that is added to tokens and begins with 0 and 1: products of two "
            "places may depend on distance only.",
            "Learned tables; interleaved and concatenated layouts; other bases.",
            "The same speed for dimensions 2i and 2i + 1.",
        ),
        (
            "每个正弦都有对应的余弦",
            "正弦与余弦频率不同的正弦位置表。",
            "为余弦使用 2 * (i + 1) / dim 指数的教程。",
            "加到词元上、且以 0 和 1 开头的表：两个位置的内积只能取决于距离。",
            "学习得到的表；交错或拼接的排列；其他底数。",
            "第 2i 与 2i + 1 维使用同一频率。",
        ),
    ),
}
