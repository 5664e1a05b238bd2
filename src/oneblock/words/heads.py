"""Words for what comes out for a whole text: one vector, or one score per label."""

from oneblock.words.entry import Entry

HEADS: dict[str, Entry] = {
    "Pool": Entry(
        ("Pooled output", "One vector for a whole text, taken from its tokens' vectors."),
        ("池化输出", "从各词元的向量得到代表整个文本的一个向量。"),
        "P",
        "T(pool(x))",
        r"T(\mathrm{pool}(x))",
    ),
    "Classify": Entry(
        ("Classifier", "One score for each label, for a whole text."),
        ("分类器", "为整个文本给出每个标签的一个得分。"),
        "C",
        "T(pool(x)) W_out + b_out",
        r"T(\mathrm{pool}(x)) W_{\mathrm{out}} + b_{\mathrm{out}}",
    ),
    "pool.first": Entry(
        ("First token", "The first real token speaks for the text."),
        ("首词元", "由第一个真实词元代表整个文本。"),
        "x_1",
        "x[first]",
        r"x_{1}",
    ),
    "pool.last": Entry(
        ("Last token", "The last real token speaks for the text: under a causal mask it alone has seen all of it."),
        ("末词元", "由最后一个真实词元代表整个文本：在因果掩码下只有它看过全文。"),
        "x_n",
        "x[last]",
        r"x_{n}",
    ),
    "pool.mean": Entry(
        ("Mean of tokens", "The mean over all real tokens speaks for the text."),
        ("词元平均", "由所有真实词元的平均代表整个文本。"),
        "x̄",
        "mean(x)",
        r"\tfrac{1}{n} \sum_i x_i",
    ),
    "step.labels": Entry(
        ("Linear", "One score per label."),
        ("线性层", "每个标签一个得分。"),
        "y",
        "y = x W_out + b_out",
        r"y = x W_{\mathrm{out}} + b_{\mathrm{out}}",
    ),
}
