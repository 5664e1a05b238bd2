"""Words for losses that are held against the wrong labels, or averaged wrongly."""

LOSS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "labels.unread": (
        (
            "The loss does not read the label at place {position}.",
            "Hold every label that is not ignored against the logits that predict it.",
        ),
        (
            "损失没有用到位置 {position} 的标签。",
            "凡是未忽略的标签，都要与预测它的 logits 对应。",
        ),
    ),
    "labels.shift": (
        (
            "The label at place t is held against the logits at place t - ({shift}); t - {right} would be right.",
            "Shift once, and in one place: either the caller shifts the labels, or the loss does.",
        ),
        (
            "位置 t 的标签与位置 t - ({shift}) 的 logits 对应；正确的是 t - {right}。",
            "只移位一次，只在一处移位：要么由调用者移动标签，要么由损失来移动。",
        ),
    ),
    "labels.unshifted": (
        (
            "The label at place t is held against the logits at place t, which have read that very token: "
            "labels equal to the input teach copying.",
            "Compare logits[:, :-1] with labels[:, 1:], or call the argument targets and say that the caller shifts.",
        ),
        (
            "位置 t 的标签与位置 t 的 logits 对应，而后者已读到该词元：若标签等于输入，模型只会学会复制。",
            "用 logits[:, :-1] 对 labels[:, 1:]；或把参数命名为 targets，并说明由调用者移位。",
        ),
    ),
    "labels.rows": (
        (
            "The first label of a text is held against the last logits of the text before it in the batch.",
            "Shift within each text, before the batch is flattened: logits[:, :-1] and labels[:, 1:].",
        ),
        (
            "一条文本的第一个标签与批次中前一条文本的最后一个 logits 对应。",
            "先在每条文本内移位，再展平批次：logits[:, :-1] 与 labels[:, 1:]。",
        ),
    ),
    "loss.noignore": (
        (
            "The loss refuses every label that could mean padding (-100, the pad id, -1), though texts may be padded.",
            "Let it ignore one: cross_entropy(..., ignore_index=-100).",
        ),
        (
            "文本可以有填充，损失却拒绝所有可表示填充的标签（-100、填充编号、-1）。",
            "让它忽略其中之一：cross_entropy(..., ignore_index=-100)。",
        ),
    ),
    "loss.pads": (
        (
            "The loss trains on padding: places labelled {value} are not left out.",
            "Pass the labels to cross_entropy as they are, with ignore_index; do not clamp or replace them.",
        ),
        (
            "损失在填充上训练：标签为 {value} 的位置没有被忽略。",
            "把标签原样交给 cross_entropy 并设置 ignore_index；不要截断或替换它们。",
        ),
    ),
    "loss.diluted": (
        (
            "Ignored places count in the mean: one more of them changes the loss from {alone} to {padded}.",
            "Divide by the number of labels that are not ignored.",
        ),
        (
            "被忽略的位置仍计入平均：多一个这样的位置，损失就从 {alone} 变为 {padded}。",
            "除以未被忽略的标签数。",
        ),
    ),
    "loss.weighting": (
        (
            "Tokens of a batch do not weigh alike: one in a text with few labels weighs {ratio} times another.",
            "Sum over all tokens of the batch, then divide once by how many there are; no mean of means.",
        ),
        (
            "同一批次中各词元的权重不同：标签少的文本里，一个词元的权重是其他词元的 {ratio} 倍。",
            "先对整批词元求和，再一次性除以词元数；不要对平均值再求平均。",
        ),
    ),
    "loss.nothing": (
        (
            "The loss of a batch whose every label is ignored is {loss}: one such batch poisons all weights.",
            "Divide by count.clamp_min(1), so that the loss is 0; or skip such batches in the trainer.",
        ),
        (
            "当一批标签全部被忽略时，损失为 {loss}：一个这样的批次就会毁掉全部权重。",
            "除以 count.clamp_min(1)，使损失为 0；或在训练循环中跳过这样的批次。",
        ),
    ),
    "labels.end": (
        (
            "The end of a text (id {end}) is ignored as if it were padding: the model never learns to stop.",
            "Ignore by the mask, not by the id; or pad with an id of its own.",
        ),
        (
            "文本结束符（编号 {end}）被当作填充忽略：模型永远学不会停止。",
            "按掩码而不是按编号忽略；或为填充使用单独的编号。",
        ),
    ),
    "shift.start": (
        (
            "The decoder's input made of labels begins with id {got}; the configuration says {wanted}.",
            "Begin with decoder_start_token_id.",
        ),
        (
            "由标签得到的解码器输入以编号 {got} 开头；配置中是 {wanted}。",
            "以 decoder_start_token_id 开头。",
        ),
    ),
    "shift.wraps": (
        (
            "The decoder's input made of labels begins with the last label; the configuration says id {wanted}.",
            "Begin with decoder_start_token_id, and drop the last label.",
        ),
        (
            "由标签得到的解码器输入以最后一个标签开头；配置中是编号 {wanted}。",
            "以 decoder_start_token_id 开头，并去掉最后一个标签。",
        ),
    ),
    "shift.leak": (
        (
            "The decoder reads what it predicts: changing label {label} changes the logits at place {position}.",
            "Make the decoder's input the start and all labels but the last, shifted by one.",
        ),
        (
            "解码器读到了要预测的内容：改变标签 {label} 会改变位置 {position} 的 logits。",
            "解码器输入应为起始符加上去掉最后一个的标签，整体右移一位。",
        ),
    ),
    "shift.far": (
        (
            "The decoder does not read the label before the one it predicts: the labels are shifted more than once.",
            "Shift the labels to the right by exactly one.",
        ),
        (
            "解码器读不到所预测标签的前一个标签：标签被移位不止一次。",
            "标签只右移一位。",
        ),
    ),
    "shift.index": (
        (
            "-100 among the labels reaches the decoder's embedding: {said}",
            "Replace -100 by the pad id in the decoder's input, not in the labels.",
        ),
        (
            "标签中的 -100 进入了解码器的词嵌入：{said}",
            "在解码器输入中把 -100 换成填充编号，标签本身保持不变。",
        ),
    ),
}
