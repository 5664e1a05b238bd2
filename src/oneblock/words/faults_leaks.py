"""Words for what a token may not know."""

LEAKS: dict[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "causal.leak": (
        (
            "The future leaks: changing token {position} changes the output at {seen} ({moved}, in {mode} mode).",
            "Hide later keys before the softmax, in every layer: scores.masked_fill(later, -inf), or is_causal=True.",
        ),
        (
            "未来信息泄漏：改变第 {position} 个词元会改变位置 {seen} 的输出（{moved}，{mode} 模式）。",
            "在每一层的 softmax 之前隐藏后面的键：scores.masked_fill(later, -inf)，或使用 is_causal=True。",
        ),
    ),
    "batch.leak": (
        (
            "Texts of one batch mix: changing the others changes the first by {moved}.",
            "Let no operation reduce or attend over the batch axis; check reshape and view, and batch_first.",
        ),
        (
            "同一批次中的文本相互影响：改变其他文本使第一条的输出变化 {moved}。",
            "不要在批次维上归约或做注意力；检查 reshape、view 与 batch_first。",
        ),
    ),
    "batch.mask": (
        (
            "Hiding tokens of one text of a batch changes another text by {moved}.",
            "Give every row its own mask, (batch, 1, 1, keys): not the first row's, and not one repeated in "
            "another order than the heads.",
        ),
        (
            "隐藏批次中一条文本的词元会使另一条文本变化 {moved}。",
            "每一行使用自己的掩码 (batch, 1, 1, keys)：不要用第一行的掩码，重复掩码时次序要与各头一致。",
        ),
    ),
    "causal.gradient": (
        (
            "The future leaks in the gradient: position {seen} has a gradient ({share} of the largest) for token "
            "{position}, though not in the value.",
            "Look for straight-through tricks (x + (y - y.detach())) and custom backward functions that pass "
            "over later tokens.",
        ),
        (
            "未来信息经梯度泄漏：位置 {seen} 对第 {position} 个词元有梯度（为最大梯度的 {share}），"
            "输出值上却看不出来。",
            "检查直通技巧 x + (y - y.detach()) 和自定义反向函数，它们不应涉及后面的词元。",
        ),
    ),
    "window.leak": (
        (
            "A layer with a window of {window} tokens sees {reach} tokens back.",
            "Hide keys at a distance of the window and more as well as later ones: (i - j >= window) | (j > i).",
        ),
        (
            "窗口为 {window} 个词元的层看到了 {reach} 个词元之前。",
            "除后面的键外，还要隐藏距离达到窗口长度的键：(i - j >= window) | (j > i)。",
        ),
    ),
    "document.leak": (
        (
            "Documents that share a row see each other ({moved}).",
            "Hide keys of other documents in every layer: documents[:, :, None] == documents[:, None, :], "
            "together with the causal mask.",
        ),
        (
            "同一行里的不同文档相互可见（{moved}）。",
            "每一层都要隐藏其他文档的键：documents[:, :, None] == documents[:, None, :]，并与因果掩码合用。",
        ),
    ),
    "source.swapped": (
        (
            "Cross-attention is the wrong way round: queries come from the source, keys and values from the target.",
            "Queries from the decoder's stream, keys and values from the encoder's output: attention(query=x, "
            "key=memory, value=memory).",
        ),
        (
            "交叉注意力接反了：查询来自源端，键和值来自目标端。",
            "查询来自解码器，键和值来自编码器输出：attention(query=x, key=memory, value=memory)。",
        ),
    ),
    "source.mixed": (
        (
            "Cross-attention takes its {source} from the source and its {target} from the target.",
            "Make keys and values of the same memory: attention(query=x, key=memory, value=memory).",
        ),
        (
            "交叉注意力的 {source} 取自源端，{target} 却取自目标端。",
            "键和值应来自同一份编码器输出：attention(query=x, key=memory, value=memory)。",
        ),
    ),
    "source.ignored": (
        (
            "The source is not read: another source gives the same answer.",
            "Give cross-attention the encoder's output as keys and values, and add what it answers to the stream.",
        ),
        (
            "没有读取源端：换一段源文本，输出相同。",
            "把编码器输出作为交叉注意力的键和值，并把它的输出加到残差流上。",
        ),
    ),
    "source.ignored_once": (
        (
            "One layer's cross-attention reads the target instead of the source, which its twins in other layers read.",
            "Give cross-attention of every layer the encoder's output as keys and values.",
        ),
        (
            "有一层的交叉注意力读取的是目标端而不是源端，其他层的同一部件读的是源端。",
            "每一层的交叉注意力都要以编码器输出作为键和值。",
        ),
    ),
    "source.length": (
        (
            "The module fails unless source and target are equally long.",
            "Cut and add nothing by the other text's length: cross-attention answers one vector per query.",
        ),
        (
            "源端与目标端长度不同时模块会报错。",
            "不要按另一段文本的长度裁剪或相加：交叉注意力对每个查询给出一个向量。",
        ),
    ),
    "source.order": (
        (
            "The order of the source's tokens changes nothing.",
            "Add positions to the encoder's input, or rotate its queries and keys.",
        ),
        (
            "改变源文本词元的顺序不影响任何输出。",
            "给编码器输入加上位置，或旋转其查询和键。",
        ),
    ),
    "source.cut": (
        (
            "Cross-attention sees {keys} of the {of} tokens of the source for a target of {length}: another "
            "number for another.",
            "Do not cut the encoder's output to the target's length.",
        ),
        (
            "目标长度为 {length} 时，交叉注意力只看到源文本 {of} 个词元中的 {keys} 个：这个数随目标长度变化。",
            "不要把编码器输出截到目标长度。",
        ),
    ),
    "source.partly": (
        (
            "The query at position {position} cannot see token {token} of {of} of the source.",
            "Let every query see all real tokens of the source: no causal mask in cross-attention, no cut to the "
            "target's length.",
        ),
        (
            "位置 {position} 的查询看不到源文本的第 {token} 个词元（共 {of} 个）。",
            "让每个查询都能看到源端的全部真实词元：交叉注意力不要用因果掩码，也不要截到目标长度。",
        ),
    ),
}
