"""Words for a mixture of experts: the router, how it weighs the experts it chooses, and the steps in between."""

from oneblock.words.entry import Entry

EXPERTS: dict[str, Entry] = {
    "MoE": Entry(
        ("Mixture of experts", "A router sends each token to a few of many feed-forwards and adds up their answers."),
        ("混合专家", "由路由把每个词元送到众多前馈网络中的少数几个，再把它们的回答加权相加。"),
        "MoE",
        "Σ_{e ∈ top} w_e FFN_e(x)",
        r"\sum_{e \in \mathrm{top}} w_e\, \mathrm{FFN}_e(x)",
    ),
    "Softmax": Entry(
        ("Softmax router", "The weights are the chosen experts' shares in the softmax over all experts."),
        ("Softmax 路由", "权重是所选专家在全体专家 softmax 中各自的份额。"),
        "w",
        "w = softmax(r)[top]",
        r"w = \mathrm{softmax}(r)_{\mathrm{top}}",
    ),
    "Softmax.renormalised": Entry(
        ("Softmax router, renormalised", "The chosen experts' shares in the softmax over all, made to sum to 1."),
        ("Softmax 路由（重新归一化）", "所选专家在全体专家 softmax 中的份额，再除以它们的和，使总和为 1。"),
        "w",
        "w = softmax(r)[top] / Σ softmax(r)[top]",
        r"w = \mathrm{softmax}(r)_{\mathrm{top}} \,/ \sum \mathrm{softmax}(r)_{\mathrm{top}}",
    ),
    "TopSoftmax": Entry(
        ("Softmax over the chosen", "The weights are the softmax over the chosen experts' scores alone."),
        ("仅对所选专家做 softmax", "权重是只对所选专家的得分做的 softmax。"),
        "w",
        "w = softmax(r[top])",
        r"w = \mathrm{softmax}(r_{\mathrm{top}})",
    ),
    "step.router": Entry(
        ("Router", "Scores each expert for each token."),
        ("路由", "为每个词元给每个专家打分。"),
        "r",
        "r = x W_router",
        r"r = x W_{\mathrm{router}}",
    ),
    "step.weights": Entry(
        ("Expert weights", "How much of each chosen expert's answer counts; the other experts are not computed."),
        ("专家权重", "每个所选专家的回答占多少分量；其余专家不参与计算。"),
        "w",
        "w = softmax(r)[top]",
        r"w = \mathrm{softmax}(r)_{\mathrm{top}}",
    ),
    "step.mix": Entry(
        ("Weighted sum", "The chosen experts' answers, each times its weight, added up."),
        ("加权求和", "把所选专家的回答各乘以权重，再相加。"),
        "y",
        "Σ_e w_e FFN_e(x)",
        r"\sum_e w_e\, \mathrm{FFN}_e(x)",
    ),
    "expert": Entry(
        ("Expert", "One of the feed-forwards: it sees only the tokens that are sent to it."),
        ("专家", "众多前馈网络之一，只处理送到它这里的词元。"),
        "FFN_e",
        "FFN_e(x)",
        r"\mathrm{FFN}_e(x)",
    ),
}
