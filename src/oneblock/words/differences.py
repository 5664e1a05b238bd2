"""Words for what tells one architecture from another, beside its bricks: what each such choice does."""

from oneblock.words.entry import Entry

DIFFERENCES: dict[str, Entry] = {
    "streams.two": Entry(
        ("encoder and decoder", "One stream reads the source, another writes the target and looks at the first."),
        ("编码器加解码器", "一条残差流读源文本，另一条写目标文本并查看前者。"),
    ),
    "streams.one": Entry(
        ("one stream", "One stream holds all there is to read and write: a prompt takes the place of the source."),
        ("单一残差流", "读和写都在同一条残差流里：提示取代了源文本。"),
    ),
    "heads.each": Entry(
        ("keys and values per head", "Every head has keys and values of its own."),
        ("每个头各有键和值", "每个头都有自己的键和值。"),
    ),
    "heads.grouped": Entry(
        ("grouped keys and values", "Several query heads share the keys and values of one: the cache shrinks."),
        ("分组共享键和值", "几个查询头共用一组键和值，缓存因此变小。"),
    ),
    "heads.one": Entry(
        ("one key head", "All query heads share one set of keys and values: the smallest cache."),
        ("单一键值头", "所有查询头共用同一组键和值，缓存最小。"),
    ),
    "biases.none": Entry(
        ("none", "Projections are matrices alone: fewer tensors to store."),
        ("无", "投影只有矩阵，需要存的张量更少。"),
    ),
    "biases.some": Entry(
        ("biases", "A bias adds the same learned vector to every token after a projection."),
        ("偏置", "偏置在投影之后给每个词元加上同一个可学习的向量。"),
    ),
    "embedding.scaled": Entry(
        (
            "scaled vectors",
            "Token vectors are multiplied by the root of the width, to outweigh the positions added to them.",
        ),
        ("缩放的向量", "词元向量乘以维度的平方根，使它不被加上的位置编码淹没。"),
    ),
    "embedding.plain": Entry(
        ("plain vectors", "Token vectors enter the stream as they are."),
        ("原样的向量", "词元向量原样进入残差流。"),
    ),
    "topic.structure": Entry(
        ("Structure", "Which streams there are, and who reads whom."),
        ("结构", "有哪些残差流，谁读谁。"),
    ),
    "topic.mask": Entry(("Mask", "Which tokens a token may look at."), ("掩码", "一个词元可以看哪些词元。")),
    "topic.position": Entry(
        ("Position", "How the model knows where a token stands."),
        ("位置编码", "模型怎样知道词元在哪里。"),
    ),
    "topic.wiring": Entry(
        ("Wiring", "Where the norms stand, and how sublayers add to the stream."),
        ("接法", "归一化放在哪里，子层怎样加到残差流上。"),
    ),
    "topic.norm": Entry(
        ("Norm", "How a token's vector is brought back to unit scale."),
        ("归一化", "怎样把词元的向量拉回单位尺度。"),
    ),
    "topic.attention": Entry(("Attention", "How tokens mix."), ("注意力", "词元怎样混合。")),
    "topic.feedforward": Entry(
        ("Feed-forward", "How each token is transformed on its own."),
        ("前馈网络", "每个词元怎样单独变换。"),
    ),
    "topic.biases": Entry(("Biases", "Which projections add a learned vector."), ("偏置", "哪些投影加上学到的向量。")),
    "topic.embedding": Entry(("Embedding", "How token ids become vectors."), ("词嵌入", "词元编号怎样变成向量。")),
    "topic.head": Entry(("Head", "What is made of the stream at the end."), ("输出头", "残差流最后变成什么。")),
    "topic.training": Entry(
        ("Training", "What acts in training only."),
        ("训练", "只在训练时起作用的部分。"),
    ),
    "topic.tokens": Entry(
        ("Special tokens", "Which ids mean padding, begin and end, and how positions are counted."),
        ("特殊词元", "哪些编号表示填充、开头和结尾，位置怎样计数。"),
    ),
    "topic.sizes": Entry(("Sizes", "How wide, how deep, how long."), ("尺寸", "多宽、多深、多长。")),
}
