"""Words for the checks of what a token may not know."""

CHECKS_OF_LEAKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB101": (
        (
            "No token sees a later one",
            "A missing, shifted or partial causal mask; a norm, a convolution or a cache that reaches ahead.",
            "nn.TransformerEncoder used as a decoder; four decoders of a large library for nine releases (2026).",
            "Every position in turn: the tokens from it on are exchanged, and no output before it may change, in eval "
            "and in train mode. The first operation whose operands agree before the position and whose result does "
            "not is named.",
            "Encoders, and prefix models told so with --as encoder.",
            "Hide later keys before the softmax, in every layer, or use is_causal=True.",
        ),
        (
            "任何词元都看不到后面的词元",
            "因果掩码缺失、错位或不完整；归一化、卷积或缓存触及后面的位置。",
            "把 nn.TransformerEncoder 当解码器使用；某大型库的四个解码器连续九个版本如此（2026）。",
            "对每个位置：替换它及之后的词元，之前的输出都不得改变，评估与训练模式都测。"
            "指出第一个操作数在该位置之前一致而结果不一致的运算。",
            "编码器；以及用 --as encoder 说明的前缀模型。",
            "在每一层的 softmax 之前隐藏后面的键，或使用 is_causal=True。",
        ),
    ),
    "OB102": (
        (
            "Texts of one batch do not mix",
            "A wrong view or reshape, attention over the batch axis, a norm over the batch.",
            "batch_first=False layers fed with the batch first; BatchNorm in eval mode without running statistics.",
            "The other texts of the batch are exchanged; the first text's output must not change.",
            "Capacity limits of experts, where a text's place in the batch decides what is dropped.",
            "Let no operation reduce or attend over the batch axis.",
        ),
        (
            "同一批次中的文本互不影响",
            "view 或 reshape 写错、在批次维上做注意力、在批次维上归一化。",
            "batch_first=False 的层却收到批次在前的输入；评估模式下没有移动统计量的 BatchNorm。",
            "替换批次中的其他文本，第一条文本的输出不得改变。",
            "有容量上限的专家：文本在批次中的位置决定丢弃什么。",
            "不要在批次维上归约或做注意力。",
        ),
    ),
    "OB103": (
        (
            "No layer sees beyond its window",
            "A window that a layer forgets, or one twice as wide.",
            "None on record that we know of.",
            "The attention weights of a text longer than the window, against what the layer or the configuration says.",
            "Windows that count the token itself or do not; layers that say they have none; lists of layer types.",
            "Hide keys at a distance of the window and more.",
        ),
        (
            "任何层都不越过自己的窗口",
            "某层忘了窗口，或窗口宽了一倍。",
            "尚无我们所知的公开记录。",
            "用长于窗口的文本，把注意力权重与该层或配置所声明的窗口相比。",
            "窗口是否计入自身都可以；声明没有窗口的层；层类型列表。",
            "隐藏距离达到窗口长度及更远的键。",
        ),
    ),
    "OB104": (
        (
            "Documents that share a row know nothing of each other",
            "Packing with attention, a convolution or a shift across the border.",
            "bionemo-recipes #1449: targets and attention across the borders of packed texts.",
            "Two documents in a row, by ids or by positions that begin again: no weight crosses, and changing "
            "one moves nothing "
            "in the other.",
            "Modules that take neither; modules in which positions that begin again separate nothing anywhere.",
            "Hide keys of other documents in every layer.",
        ),
        (
            "同一行里的文档互不相知",
            "打包时注意力、卷积或移位越过了边界。",
            "bionemo-recipes #1449：打包文本的目标和注意力越过边界。",
            "一行两篇文档，用编号或重新开始的位置区分：没有跨界的权重，改变一篇不影响另一篇。",
            "两者都不接受的模块；重新开始的位置在任何层都不起分隔作用的模块。",
            "每一层都要隐藏其他文档的键。",
        ),
    ),
    "OB105": (
        (
            "The decoder reads the source, the right way round",
            "Queries and keys swapped, values of the target, cross-attention that attends to itself or is not added.",
            "Introductions that say queries come from the encoder.",
            "Source and target are changed in turn: what queries, keys and values of each place depend on is measured.",
            "Decoders that attend to source and target at once.",
            "attention(query=x, key=memory, value=memory), and add the answer to the stream.",
        ),
        (
            "解码器读取源端，而且方向正确",
            "查询与键接反、值取自目标端、交叉注意力只看自己或结果没有加上。",
            "把查询说成来自编码器的入门文章。",
            "依次改变源端与目标端，测出每处的查询、键、值依赖于谁。",
            "同时关注源端和目标端的解码器。",
            "attention(query=x, key=memory, value=memory)，并把结果加到残差流上。",
        ),
    ),
    "OB106": (
        (
            "No gradient comes from a later token",
            "Straight-through tricks and custom backward functions over the whole text.",
            "None on record that we know of.",
            "The gradient of every answer with respect to every token; asked where the values are right.",
            "Encoders, as for OB101.",
            "Let the backward pass see what the forward pass saw.",
        ),
        (
            "没有来自后面词元的梯度",
            "跨整段文本的直通技巧和自定义反向函数。",
            "尚无我们所知的公开记录。",
            "每个输出对每个词元的梯度；仅在输出值正确时才问。",
            "编码器，同 OB101。",
            "反向所见应与前向所见一致。",
        ),
    ),
    "OB107": (
        (
            "The order of the source matters",
            "An encoder without positions.",
            "None on record that we know of.",
            "The source is turned round; some answer must change.",
            "Sources given as vectors, which may know their places already.",
            "Add positions to the encoder's input.",
        ),
        (
            "源文本的次序有影响",
            "编码器没有位置信息。",
            "尚无我们所知的公开记录。",
            "把源文本倒过来，输出必须有变化。",
            "以向量给出的源端，可能已含位置。",
            "给编码器输入加上位置。",
        ),
    ),
    "OB108": (
        (
            "Every query may see the whole source",
            "A causal mask in cross-attention; a memory cut to the target's length.",
            "None on record that we know of.",
            "The weights of every place of cross-attention, and the number of keys for targets of two lengths.",
            "Padding of the source; encoders that shorten the source by themselves.",
            "Give cross-attention the source's padding mask and nothing else.",
        ),
        (
            "每个查询都能看到整个源文本",
            "交叉注意力里用了因果掩码；编码器输出被截到目标长度。",
            "尚无我们所知的公开记录。",
            "每处交叉注意力的权重，以及两种目标长度下键的个数。",
            "源端的填充；自行缩短源文本的编码器。",
            "交叉注意力只用源端的填充掩码。",
        ),
    ),
}
