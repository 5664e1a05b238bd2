"""Words for what a forward pass keeps so that backward can use it, and for what a price says of itself."""

from oneblock.words.entry import Entry

KEPT: dict[str, Entry] = {
    "cost.kept.input": Entry(
        ("input", "What came in: the gradient of a matrix, or of a norm, needs it."),
        ("输入", "进来的张量：矩阵或归一化的梯度需要它。"),
    ),
    "cost.kept.q": Entry(("queries", "The gradient of the keys needs them."), ("查询", "键的梯度需要它。")),
    "cost.kept.k": Entry(("keys", "The gradient of the queries needs them."), ("键", "查询的梯度需要它。")),
    "cost.kept.v": Entry(
        ("values", "The gradient of the attention weights needs them."), ("值", "注意力权重的梯度需要它。")
    ),
    "cost.kept.z": Entry(
        ("heads' output", "The gradient of the output matrix needs it."),
        ("各头输出", "输出矩阵的梯度需要它。"),
    ),
    "cost.kept.joined": Entry(
        ("heads side by side", "A copy of the heads' output, made where the kernel lays it out head by head."),
        ("拼接的各头", "内核按头排放输出时，拼接各头产生的一份复制。"),
    ),
    "cost.kept.log_sum": Entry(
        ("sums of the softmax", "A number per query and head, from which the kernel computes the weights again."),
        ("softmax 的和", "每个头每个查询一个数，内核由它重新算出权重。"),
    ),
    "cost.kept.softmax": Entry(
        ("softmax", "The weights before dropout and before empty rows are cleared."),
        ("softmax", "随机失活和清空空行之前的权重。"),
    ),
    "cost.kept.pattern": Entry(
        ("attention weights", "What the values are multiplied by: a number for every query, key and head."),
        ("注意力权重", "与值相乘的权重：每个头每对查询和键一个数。"),
    ),
    "cost.kept.capped": Entry(
        ("capped numbers", "The tanh of what a soft cap bends."),
        ("软上限的结果", "软上限所用 tanh 的值。"),
    ),
    "cost.kept.mask": Entry(("mask", "Which keys each query may see."), ("掩码", "每个查询能看到哪些键。")),
    "cost.kept.bias": Entry(("score bias", "What is added to the scores."), ("分数偏置", "加到分数上的偏置。")),
    "cost.kept.buckets": Entry(
        ("buckets", "Which row of the table each query and key use."),
        ("距离桶", "每对查询和键使用表中哪一行。"),
    ),
    "cost.kept.statistics": Entry(
        ("statistics", "The size of each vector, and its mean if that is subtracted."),
        ("统计量", "每个向量的尺度，若减均值则还有均值。"),
    ),
    "cost.kept.unit": Entry(
        ("unit vectors", "The vectors after division, before they are scaled."),
        ("单位向量", "除以尺度之后、乘以权重之前的向量。"),
    ),
    "cost.kept.dropout": Entry(
        ("dropout mask", "A number for each feature, 0 where it was dropped."),
        ("失活掩码", "每个特征一个数，被丢弃处为 0。"),
    ),
    "cost.kept.dropped": Entry(
        ("dropped features", "The hidden features after dropout, which the next matrix needs."),
        ("失活后的特征", "随机失活之后的隐藏特征，下一个矩阵需要它。"),
    ),
    "cost.kept.up": Entry(
        ("up projection", "The hidden features before the activation, or before the gate."),
        ("升维结果", "激活或门之前的隐藏特征。"),
    ),
    "cost.kept.gate": Entry(("gate", "The gate before the activation."), ("门", "激活之前的门。")),
    "cost.kept.activation": Entry(("bent gate", "The gate after the activation."), ("激活后的门", "激活之后的门。")),
    "cost.kept.hidden": Entry(
        ("hidden features", "What the down projection reads, or what the activation gave."),
        ("隐藏特征", "降维投影读入的特征，或激活的结果。"),
    ),
    "cost.kept.dense": Entry(("dense layer", "What the activation needs."), ("线性层结果", "激活函数需要的输入。")),
    "cost.kept.routes": Entry(
        ("routes", "The router's shares, the experts chosen, and who goes where."),
        ("路由结果", "路由的份额、选中的专家和去向。"),
    ),
    "cost.kept.gathered": Entry(
        ("gathered tokens", "A copy of each token for every expert it chose."),
        ("分发的词元", "每个词元为其选中的专家各复制一份。"),
    ),
    "cost.kept.answers": Entry(
        ("experts' answers", "What the experts gave, before and after it was weighed."),
        ("专家的输出", "专家的输出，加权前后各一份。"),
    ),
    "cost.kept.ids": Entry(
        ("ids", "Which rows of the tables were read."),
        ("编号", "读了表中的哪些行。"),
    ),
    "cost.kept.angles": Entry(
        ("angles", "Cosine and sine of each position, shared by all layers."),
        ("角度", "每个位置的余弦和正弦，各层共用。"),
    ),
    "cost.kept.memory": Entry(
        ("encoder's output", "What every cross-attention reads, kept once."),
        ("编码器输出", "各层交叉注意力都读它，只保留一份。"),
    ),
    "cost.kept.loss": Entry(
        ("softmax of the logits", "Its logarithm in float32, and the labels."),
        ("得分的 softmax", "以 float32 保存的对数，以及标签。"),
    ),
    "cost.kept.toward": Entry(
        ("gradients at once", "The gradients of stream and head, computed with the loss so that no logits are kept."),
        ("当即算出的梯度", "残差流与输出头的梯度，与损失一起算出，因此不必保留得分。"),
    ),
    "cost.kept.places": Entry(("places", "Which tokens were pooled."), ("位置", "汇聚了哪些词元。")),
}

PRICES: dict[str, Entry] = {
    "cost.shared": Entry(
        ("Shared by layers", "What all layers of a stack use together."),
        ("各层共用", "一个层堆中各层共用的部分。"),
    ),
    "bound.compute": Entry(
        ("compute", "The matrix products decide how long it takes."),
        ("算力", "耗时由矩阵乘法决定。"),
    ),
    "bound.memory": Entry(
        ("memory", "Reading and writing decide how long it takes."),
        ("带宽", "耗时由读写内存决定。"),
    ),
    "phase.train": Entry(
        ("training", "Forward and backward of all tokens, and a step of AdamW."),
        ("训练", "所有词元的前向和反向，再加 AdamW 的一步。"),
    ),
    "phase.prefill": Entry(("prefill", "One forward pass over all tokens."), ("预填充", "所有词元的一次前向。")),
    "phase.decode": Entry(
        ("decoding", "One new token of each text, after those in the cache."),
        ("解码", "在缓存之后，每个文本写一个新词元。"),
    ),
    "crossover.scores.feedforward": Entry(
        ("scores = feed-forward", "From this length on the scores cost more FLOPs than the feed-forward."),
        ("注意力分数 = 前馈网络", "超过这个长度，注意力分数的运算量超过前馈网络。"),
    ),
    "crossover.scores.products": Entry(
        ("scores = all other products", "From this length on the scores cost more FLOPs than all else in a block."),
        ("注意力分数 = 其余所有乘法", "超过这个长度，注意力分数的运算量超过块内其余全部。"),
    ),
    "crossover.scores.kept": Entry(
        ("kept scores = all else kept", "From this length on written-out scores fill most of a block's activations."),
        ("保留的分数 = 其余保留量", "超过这个长度，写出的注意力分数占块内激活的大部分。"),
    ),
}
