"""Words for faults of attention: the scale, masks, the axis of the softmax, heads, dropout."""

ATTENTION: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "scale.missing": (
        (
            "Scores are not scaled: q·k is multiplied with {factor}, not with 1/sqrt(head_dim) = {right} "
            "(head_dim {head_dim}; places: {places}).",
            "Divide q·k by sqrt(head_dim) before the softmax.",
        ),
        (
            "分数没有缩放：q·k 乘以 {factor}，而不是 1/sqrt(head_dim) = {right}（head_dim 为 "
            "{head_dim}，共 {places} 处）。",
            "在 softmax 之前把 q·k 除以 sqrt(head_dim)。",
        ),
    ),
    "scale.width": (
        (
            "Scores are divided by the root of the model's width: q·k is multiplied with {factor}, not with "
            "1/sqrt(head_dim) = {right} (places: {places}).",
            "Divide by sqrt(head_dim), the width of one head ({head_dim}), not of the model.",
        ),
        (
            "分数除以了模型宽度的平方根：q·k 乘以 {factor}，而不是 1/sqrt(head_dim) = {right}（共 {places} 处）。",
            "除以 sqrt(head_dim)：一个头的宽度（{head_dim}），而不是模型的宽度。",
        ),
    ),
    "scale.twice": (
        (
            "The scale is applied twice: q·k is multiplied with {factor} = 1/head_dim, not with "
            "1/sqrt(head_dim) = {right} "
            "(places: {places}).",
            "Scale once: either the queries or the scores; scaled_dot_product_attention scales by itself.",
        ),
        (
            "缩放做了两次：q·k 乘以 {factor} = 1/head_dim，而不是 1/sqrt(head_dim) = {right}（共 {places} 处）。",
            "只缩放一次：要么缩放查询，要么缩放分数；scaled_dot_product_attention 自己会缩放。",
        ),
    ),
    "scale.multiplied": (
        (
            "Scores are multiplied where they should be divided: the factor is {factor}, not "
            "1/sqrt(head_dim) = {right} "
            "(places: {places}).",
            "Divide by sqrt(head_dim), or multiply by head_dim ** -0.5.",
        ),
        (
            "分数该除却乘了：系数为 {factor}，而不是 1/sqrt(head_dim) = {right}（共 {places} 处）。",
            "除以 sqrt(head_dim)，或乘以 head_dim ** -0.5。",
        ),
    ),
    "scale.other": (
        (
            "Scores have an unusual scale: q·k is multiplied with {factor}, not with 1/sqrt(head_dim) = {right} "
            "(places: {places}).",
            "If this is meant, put it into the configuration as query_pre_attn_scalar or attention_multiplier; "
            "otherwise compute it from head_dim.",
        ),
        (
            "分数的缩放不寻常：q·k 乘以 {factor}，而不是 1/sqrt(head_dim) = {right}（共 {places} 处）。",
            "若有意如此，请写入配置（query_pre_attn_scalar 或 attention_multiplier）；否则由 head_dim 计算。",
        ),
    ),
    "mask.after": (
        (
            "The mask comes after the softmax: rows of weights sum to as little as 1 - {lost}, and "
            "hidden keys still take "
            "part in the sum that divides (places: {places}).",
            "Hide keys in the scores, with -inf, before the softmax.",
        ),
        (
            "掩码在 softmax 之后：权重各行之和低至 1 - {lost}，被隐藏的键仍参与作分母的和（共 {places} 处）。",
            "在 softmax 之前把分数中要隐藏的键设为 -inf。",
        ),
    ),
    "mask.after_renormalised": (
        (
            "The mask comes after the softmax and weights are divided by their sum again: the same "
            "in theory, but where "
            "a hidden key has the largest score, what is left is rounded to nothing (places: {places}).",
            "Hide keys in the scores, with -inf, before the softmax.",
        ),
        (
            "掩码在 softmax 之后，权重又除以它们的和：理论上相同，但若被隐藏的键分数最大，"
            "剩下的会被舍入为零（共 {places} 处）。",
            "在 softmax 之前把分数中要隐藏的键设为 -inf。",
        ),
    ),
    "softmax.axis": (
        (
            "The softmax runs over axis {axis}, not over keys: the weights of a query do not sum "
            "to 1 (places: {places}).",
            "softmax(scores, dim=-1), where the last axis of scores is that of the keys.",
        ),
        (
            "softmax 沿第 {axis} 维进行，而不是沿键的维：一个查询的权重之和不为 1（共 {places} 处）。",
            "使用 softmax(scores, dim=-1)，分数的最后一维应为键。",
        ),
    ),
    "mask.promise": (
        (
            "{argument} means the opposite of its name: here {found}, by convention {promised}.",
            "Turn the mask round where it is applied, or give the argument another name.",
        ),
        (
            "{argument} 的含义与名称相反：此处为 {found}，惯例为 {promised}。",
            "在使用处取反掩码，或给参数换一个名称。",
        ),
    ),
    "mask.inverted": (
        (
            "The causal mask is turned round: tokens see only what comes later (places: {places}).",
            "True means take part in scaled_dot_product_attention, and ignore in "
            "nn.MultiheadAttention: turn the mask round.",
        ),
        (
            "因果掩码反了：词元只看到后面的词元（共 {places} 处）。",
            "在 scaled_dot_product_attention 中 True 表示参与，在 nn.MultiheadAttention 中表示忽略：请取反掩码。",
        ),
    ),
    "mask.numbers": (
        (
            "A mask of 0 and 1 is added to the scores: it hides nobody (places: {places}).",
            "Give a boolean mask, or add 0 and -inf.",
        ),
        ("把 0 和 1 的掩码加到了分数上：它隐藏不了任何键（共 {places} 处）。", "使用布尔掩码，或加 0 与 -inf。"),
    ),
    "mask.outscored": (
        (
            "Hidden keys get the score {fill}: with scores around {score} they receive a weight of {weight}.",
            "Fill with -inf, or with torch.finfo(scores.dtype).min.",
        ),
        (
            "被隐藏的键得到分数 {fill}：当分数约为 {score} 时，它们得到 {weight} 的权重。",
            "用 -inf 或 torch.finfo(scores.dtype).min 填充。",
        ),
    ),
    "mask.outscored_extreme": (
        (
            "Hidden keys get the score {fill}: with scores around {score}, which unbounded attention has reached in "
            "training, they receive a weight of {weight}.",
            "Fill with -inf, or with torch.finfo(scores.dtype).min.",
        ),
        (
            "被隐藏的键得到分数 {fill}：当分数约为 {score}（无约束的注意力在训练中达到过）时，"
            "它们得到 {weight} 的权重。",
            "用 -inf 或 torch.finfo(scores.dtype).min 填充。",
        ),
    ),
    "heads.tiled": (
        (
            "Grouped keys are repeated in another order than usual: {heads} heads read groups {order} of {groups} "
            "(places: {places}); checkpoints have head h read group h // (heads per group).",
            "Repeat with repeat_interleave along the axis of heads, not with repeat.",
        ),
        (
            "分组的键以不同于惯例的顺序重复：{heads} 个头读取 {groups} 组中的 {order}（共 {places} 处）；"
            "检查点中第 h 个头读取第 h // (每组头数) 组。",
            "沿头的维使用 repeat_interleave，而不是 repeat。",
        ),
    ),
    "heads.apart": (
        (
            "Heads read the keys of one group and the values of another: keys are repeated as "
            "{order}, values differently "
            "(places: {places}).",
            "Repeat keys and values in the same way, with repeat_interleave along the axis of heads.",
        ),
        (
            "各头读取一组的键却读取另一组的值：键按 {order} 重复，值的顺序不同（共 {places} 处）。",
            "键与值以同样方式重复：沿头的维使用 repeat_interleave。",
        ),
    ),
    "dropout.scores": (
        (
            "Dropout acts on the scores, before the softmax: a dropped score is 0, which hides "
            "nothing (places: {places}).",
            "Apply dropout to the weights, after the softmax.",
        ),
        (
            "dropout 作用在 softmax 之前的分数上：被丢弃的分数为 0，并不隐藏任何键（共 {places} 处）。",
            "把 dropout 用在 softmax 之后的权重上。",
        ),
    ),
    "dropout.renormalised": (
        (
            "Weights are divided by their sum after dropout: what was dropped is made up for, in another measure than "
            "dropout's own (places: {places}).",
            "Apply dropout last, to weights that already sum to 1.",
        ),
        (
            "dropout 之后又把权重除以它们的和：被丢弃的部分又得到补偿，且与 dropout 自身的尺度不同（共 {places} 处）。",
            "最后再对已归一的权重做 dropout。",
        ),
    ),
    "attention.sharp": (
        (
            "Attention starts nearly one-hot: the largest weight of a row is {weight} on average, "
            "so hardly any gradient "
            "passes the softmax.",
            "Scale scores by 1/sqrt(head_dim) and let projections start smaller.",
        ),
        (
            "注意力一开始就近乎独热：每行最大权重平均为 {weight}，梯度几乎无法通过 softmax。",
            "分数乘以 1/sqrt(head_dim)，并用更小的值初始化投影。",
        ),
    ),
    "attention.flat": (
        (
            "All visible keys always get the same weight, whatever queries and keys are (places: {places}).",
            "Look for a factor of 0, or for queries and keys that never reach the scores.",
        ),
        (
            "无论查询与键为何，所有可见的键总得到相同的权重（共 {places} 处）。",
            "检查是否有系数 0，或查询与键没有进入分数。",
        ),
    ),
}
