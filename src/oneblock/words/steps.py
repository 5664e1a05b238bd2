"""Words for the steps inside attention, feed-forward and head: the tensors that a forward pass makes on its way."""

from oneblock.words.entry import Entry

STEPS: dict[str, Entry] = {
    "step.query": Entry(
        ("Query", "What a token asks the others."),
        ("查询", "一个词元向其他词元提出的问题。"),
        "q",
        "q = x W_Q + b_Q",
        r"Q = x W_Q",
    ),
    "step.key": Entry(
        ("Key", "What a token offers to be found by."),
        ("键", "一个词元供别人查找的标签。"),
        "k",
        "k = x W_K + b_K",
        r"K = x W_K",
    ),
    "step.value": Entry(
        ("Value", "What a token answers when it is found."),
        ("值", "一个词元被找到后给出的内容。"),
        "v",
        "v = x W_V + b_V",
        r"V = x W_V",
    ),
    "step.scores": Entry(
        ("Scores", "How well each query fits each key, before softmax."),
        ("注意力分数", "每个查询与每个键的契合程度，在 softmax 之前。"),
        "s",
        "s = q kᵀ / √d_k",
        r"S = QK^\top / \sqrt{d_k}",
    ),
    "step.pattern": Entry(
        ("Attention weights", "The share of its attention that each query gives to each key; every row sums to 1."),
        ("注意力权重", "每个查询分给每个键的注意力份额，每一行之和为 1。"),
        "a",
        "a = softmax(s + mask)",
        r"A = \mathrm{softmax}(S + M)",
    ),
    "step.z": Entry(
        ("Heads' output", "For each head the mean of the values, weighted by the attention weights."),
        ("各头输出", "每个头按注意力权重对值的加权平均。"),
        "z",
        "z = a v",
        r"Z = AV",
    ),
    "step.out": Entry(
        ("Output projection", "Puts the heads side by side and mixes them back to the width of the stream."),
        ("输出投影", "把各头拼在一起，再混合回残差流的宽度。"),
        "o",
        "concat(z) W_O + b_O",
        r"\mathrm{concat}(Z) W_O",
    ),
    "step.up": Entry(
        ("Up projection", "Widens each token to the hidden features."),
        ("升维投影", "把每个词元展宽到隐藏特征。"),
        "u",
        "x W_up + b_up",
        r"x W_{\mathrm{up}} + b_{\mathrm{up}}",
    ),
    "step.gate": Entry(
        ("Gate projection", "Computes what decides how much of each hidden feature passes."),
        ("门控投影", "算出每个隐藏特征能通过多少。"),
        "g",
        "x W_gate + b_gate",
        r"x W_{\mathrm{gate}} + b_{\mathrm{gate}}",
    ),
    "step.hidden": Entry(
        ("Hidden features", "The widened token after the activation."),
        ("隐藏特征", "展宽后的词元经过激活。"),
        "h",
        "h = σ(u)",
        r"h = \sigma(u)",
    ),
    "step.hidden.gated": Entry(
        ("Hidden features", "The widened token, each feature multiplied by its gate."),
        ("隐藏特征", "展宽后的词元，每个特征乘以它的门。"),
        "h",
        "h = σ(g) ⊙ u",
        r"h = \sigma(g) \odot u",
    ),
    "step.down": Entry(
        ("Down projection", "Brings each token back to the width of the stream."),
        ("降维投影", "把每个词元收回到残差流的宽度。"),
        "d",
        "h W_down + b_down",
        r"h W_{\mathrm{down}} + b_{\mathrm{down}}",
    ),
    "step.logits": Entry(
        ("Linear", "One logit per token of the vocabulary."),
        ("线性层", "词表中每个词元一个得分。"),
        "y",
        "x W_out + b_out",
        r"x W_{\mathrm{out}} + b_{\mathrm{out}}",
    ),
    "step.softmax": Entry(
        ("Softmax", "Turns numbers into positive shares that sum to 1."),
        ("Softmax", "把一组数变成和为 1 的正份额。"),
        "p",
        "exp(y − max y) / Σ exp(y − max y)",
        r"\frac{e^{y_i - \max y}}{\sum_j e^{y_j - \max y}}",
    ),
}
