"""Words for the checks of padding."""

CHECKS_OF_PADDING: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB201": (
        (
            "What stands at hidden places reaches nobody",
            "A padding mask that is accepted and ignored, or that some layers do not get.",
            "GPT-2 ports that take attention_mask and use the causal mask alone.",
            "Hidden tokens are exchanged on the right, on the left and in between; no "
            "real token's output may change. The "
            "first operation that lets the change in is named.",
            "Rounding; what hidden places themselves answer; convolutions, whose input has to be hidden by the caller.",
            "Hide padded keys before the softmax in every layer.",
        ),
        (
            "被遮住的内容影响不到任何词元",
            "填充掩码被接受却没有使用，或某些层没有收到。",
            "接受 attention_mask 却只用因果掩码的 GPT-2 移植版。",
            "分别替换右侧、左侧与中间被遮住的词元；真实词元的输出都不得改变。指出最先让变化进入的运算。",
            "舍入误差；被遮住位置自身的输出；卷积（其输入须由调用者遮住）。",
            "在每一层的 softmax 之前遮住填充位置的键。",
        ),
    ),
    "OB202": (
        (
            "How much padding there is changes nothing",
            "Means over the padded length, positions counted from the end, outputs cut "
            "short, one mode with another mask.",
            "nn.TransformerEncoder: outputs cut in eval mode, other answers in train mode (2022 and 2023).",
            "A text padded on the right is compared with the text alone, in double "
            "precision, and train mode with eval mode.",
            "Other rounding because of other shapes: the noise floor of the module is measured, not assumed.",
            "Count real tokens, not the padded length.",
        ),
        (
            "有多少填充都不改变结果",
            "对填充后的长度求平均、从末尾计数的位置、被截短的输出、某个模式使用不同的掩码。",
            "nn.TransformerEncoder：评估模式截短输出，训练模式结果不同（2022、2023）。",
            "把右侧填充的文本与原文本比较（双精度），并比较训练与评估模式。",
            "形状不同带来的舍入差异：模块的噪声下限是测出来的，不是假定的。",
            "按真实词元数计算，而不是按填充后的长度。",
        ),
    ),
    "OB203": (
        (
            "Padding of the source reaches nobody",
            "Cross-attention without the source's mask, an encoder that ignores it.",
            "Translators by hand: the mask is given to the encoder and forgotten in the decoder.",
            "Hidden tokens of the source are exchanged, and taken away; no answer may change.",
            "Sources without padding; modules that take memory and hide it themselves.",
            "Hide padded source tokens in the encoder and in every cross-attention.",
        ),
        (
            "源端的填充影响不到任何位置",
            "交叉注意力没有使用源端掩码，或编码器忽略它。",
            "手写的翻译模型：掩码给了编码器，却在解码器中被遗忘。",
            "替换并去掉源文本中被遮住的词元；任何输出都不得改变。",
            "没有填充的源文本；自行遮住记忆的模块。",
            "在编码器和每一个交叉注意力中遮住源端的填充。",
        ),
    ),
    "OB204": (
        (
            "A row with nothing to see stays finite",
            "nan from a softmax over nothing, which spreads to real tokens, other texts and gradients.",
            "torch's attention with causal and padding mask together (open since 2020).",
            "Padding before a causal text, a text of padding, a source of padding: real "
            "answers and all gradients must be "
            "finite. nan at the empty rows alone is a warning.",
            "Any finite answer at the empty rows.",
            "Give such rows zeros, and keep the softmax itself finite.",
        ),
        (
            "看不到任何键的行保持有限",
            "对空集做 softmax 得到 nan，并扩散到真实词元、其他文本与梯度。",
            "torch 的注意力同时使用因果与填充掩码时（2020 年至今未关闭）。",
            "因果文本之前的填充、全是填充的文本、全是填充的源文本："
            "真实输出与全部梯度必须有限。只有空行自身为 nan 时是警告。",
            "空行上任何有限的输出。",
            "让这样的行输出零，并让 softmax 本身保持有限。",
        ),
    ),
    "OB205": (
        (
            "Texts of different lengths can be told apart",
            "Encoders that read padding as text because nobody can tell them.",
            "The block that introductions print.",
            "A text is padded with the pad id (or zeros); if the module takes no mask, its answers must not change.",
            "Decoders: padding on the right is later than every real token. Modules that know padding by its id.",
            "Take a padding mask.",
        ),
        (
            "能够区分长度不同的文本",
            "编码器把填充当成正文，因为无从告知。",
            "各种入门文章里的那个模块。",
            "用填充编号（或零）填充文本；若模块不接受掩码，输出就不得改变。",
            "解码器：右侧填充晚于所有真实词元。凭编号识别填充的模块。",
            "接受一个填充掩码。",
        ),
    ),
    "OB206": (
        (
            "The vector of a text counts real tokens only",
            "Means and maxima over padding, a sum divided by the padded length, the "
            "last place read under right padding.",
            "Sentence vectors by x.mean(1); classifiers on decoders that read x[:, -1].",
            "A text is padded on the right, with two fillings, and compared with the text alone.",
            "A first token that stands for the text; reading the last place where padding is on the left (a warning).",
            "Average over real tokens; read the last real token.",
        ),
        (
            "文本向量只计入真实词元",
            "对填充求平均或最大值、总和除以填充后的长度、右侧填充时读取最后一个位置。",
            "用 x.mean(1) 得到的句向量；在解码器上读取 x[:, -1] 的分类器。",
            "用两种内容在右侧填充文本，并与原文本比较。",
            "用首个词元代表文本；左侧填充时读取最后一个位置（警告）。",
            "只对真实词元求平均；读取最后一个真实词元。",
        ),
    ),
}
