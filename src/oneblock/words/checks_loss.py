"""Words for the checks of the loss."""

CHECKS_OF_LOSS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "OB211": (
        (
            "Every label is held against the logits that predict it",
            "Labels shifted twice, not at all, backwards, or from one text into the next.",
            "Trainers that shift for a model that shifts (many since 2023).",
            "One label at a time: the gradient of the loss tells which logits it moves.",
            "Callers who shift themselves (an argument called targets); encoders and translators, which shift nothing.",
            "Shift once, within each text.",
        ),
        (
            "每个标签都与预测它的 logits 对应",
            "标签移位两次、没有移位、方向相反，或从一条文本移到下一条。",
            "为已自行移位的模型再移位一次的训练程序（2023 年以来屡见）。",
            "一次只放一个标签：损失的梯度说明它牵动哪些 logits。",
            "由调用者移位（参数名为 targets）；不移位的编码器与翻译模型。",
            "在每条文本内只移位一次。",
        ),
    ),
    "OB212": (
        (
            "Ignored labels are neither trained on nor counted",
            "Padding in the loss, -100 turned into a token, a mean over the padded length.",
            "Loss curves that depend on how long the longest text of a batch is.",
            "Labels are ignored in part: only labelled places may have gradients, and "
            "one ignored place more must change "
            "nothing. -100, the pad id and -1 are tried.",
            "Modules that take neither a mask nor an ignored label: they read full texts.",
            "cross_entropy with ignore_index, divided by the number of labels that count.",
        ),
        (
            "被忽略的标签既不训练也不计数",
            "损失包含填充、-100 变成词元、按填充后的长度求平均。",
            "损失曲线取决于一批中最长文本的长度。",
            "忽略部分标签：只有有标签的位置可以有梯度，多一个被忽略的位置不得改变损失。依次尝试 -100、填充编号与 -1。",
            "既不接受掩码也没有忽略标签的模块：它们读取完整文本。",
            "使用带 ignore_index 的 cross_entropy，并除以有效标签数。",
        ),
    ),
    "OB213": (
        (
            "Every token of a batch weighs alike",
            "A mean of the texts' means, or of micro-batches' means.",
            "Gradient accumulation in large trainers until October 2024, and again since.",
            "The pull of one token in a text with one label is compared with its pull in a text with many.",
            "Sums, and sums divided by the number of texts.",
            "Sum over all tokens, then divide once.",
        ),
        (
            "同一批次中每个词元的权重相同",
            "对各文本的平均值、或各小批的平均值再求平均。",
            "大型训练框架的梯度累积，直到 2024 年 10 月，此后又出现过。",
            "比较同一词元在只有一个标签的文本与有许多标签的文本中的梯度。",
            "求和，以及求和后除以文本数。",
            "先对全部词元求和，再一次性相除。",
        ),
    ),
    "OB214": (
        (
            "A batch with nothing to learn gives a loss of 0",
            "nan from a mean over no label, which one step later is in every weight.",
            "torch's own cross_entropy; trainers on packed dialogues.",
            "All labels are ignored; the loss must be finite. A warning, since torch itself gives nan.",
            "Trainers that skip such batches.",
            "Divide by count.clamp_min(1).",
        ),
        (
            "没有可学内容的批次损失为 0",
            "对零个标签求平均得到 nan，一步之后就进入所有权重。",
            "torch 自己的 cross_entropy；训练打包对话的程序。",
            "忽略全部标签；损失必须有限。因 torch 自身也给出 nan，故为警告。",
            "会跳过这类批次的训练程序。",
            "除以 count.clamp_min(1)。",
        ),
    ),
    "OB215": (
        (
            "The decoder's input is the labels, shifted by one",
            "A wrong start token, the last label wrapped round to the front, labels fed as they are, -100 as an index.",
            "Marian in a large library (2020): teacher forcing began with the end of the text.",
            "Each label is changed: it must be felt at all later logits and at no earlier ones. The start of the "
            "configuration is compared with the one that is used.",
            "Models that begin with the last label by design, and whose configuration names no start.",
            "The start, then all labels but the last; the pad id for -100.",
        ),
        (
            "解码器的输入是右移一位的标签",
            "起始符错误、最后一个标签绕到开头、标签原样输入、把 -100 当作下标。",
            "某大型库中的 Marian（2020）：训练时从文本结束符开始。",
            "逐个改变标签：之后的 logits 都应变化，之前的都不应变化。并比较配置中的起始符与实际使用的起始符。",
            "按设计以最后一个标签开头、且配置没有给出起始符的模型。",
            "起始符，再接除最后一个以外的标签；-100 换成填充编号。",
        ),
    ),
    "OB216": (
        (
            "The end of a text is learned",
            "The end ignored because it has the same id as padding: generation never stops.",
            "Fine-tuning with pad = eos, again and again.",
            "A label that is the configuration's end is given at a real place: the loss must feel it.",
            "Models without a configured end.",
            "Ignore by the mask, or pad with an id of its own.",
        ),
        (
            "文本的结束会被学到",
            "结束符与填充编号相同而被忽略：生成永不停止。",
            "以 pad = eos 进行的微调，一再发生。",
            "在真实位置放一个等于配置结束符的标签：损失必须有反应。",
            "没有配置结束符的模型。",
            "按掩码忽略，或为填充使用单独的编号。",
        ),
    ),
}
